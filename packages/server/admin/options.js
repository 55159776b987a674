import { askJson } from './api.js'
import { fillTable } from './elements.js'

/** The effective options of the node that answers, with a search. */
export function createOptions() {
  const section = document.querySelector('#config')
  const form = section.querySelector('form')
  let rows = []

  function show() {
    const wanted = form.elements.search.value.trim().toLowerCase()
    const found = rows.filter((cells) => cells.some((text) => text.toLowerCase().includes(wanted)))
    section.querySelector('output').textContent =
      found.length === rows.length ? `${rows.length} options` : `${found.length} of ${rows.length} options`
    fillTable(section.querySelector('table'), ['option', 'value'], found, 'No option matches.')
  }

  form.oninput = show
  form.onsubmit = (event) => event.preventDefault()
  return {
    async load() {
      const { options } = await askJson('/api/config')
      rows = Object.entries(options).map(([name, value]) => [name, JSON.stringify(value)])
      show()
    },
  }
}
