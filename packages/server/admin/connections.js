import { askJson } from './api.js'
import { count, element, fillTable, offer as offerTo } from './elements.js'

/** Connections of a node or of all: search, pages, and a way to end one. */
export function createConnections(guard) {
  const section = document.querySelector('#connections')
  const form = section.querySelector('form')
  const next = section.querySelector('.next')
  const missing = section.querySelector('.missing')
  let after

  async function show() {
    const { node, by, value } = Object.fromEntries(new FormData(form))
    const query = { node, limit: 50, after, ...(by === '' || value === '' ? {} : { [by]: value }) }
    const page = await askJson('/api/connections', { query })
    const rows = page.connections.map((connection) => [
      connection.node,
      connection.session,
      connection.user,
      connection.address,
      new Date(connection.openedAt).toLocaleString(),
      `${count(connection.listenCount)}: ${connection.listens.join(' ')}`,
      disconnectButton(connection.session),
    ])
    const names = ['node', 'session', 'user', 'address', 'since', 'listens', '']
    fillTable(section.querySelector('table'), names, rows, 'No connection matches.')
    missing.hidden = page.missing.length === 0
    missing.textContent = `Without those of nodes that did not answer: ${page.missing.join(' ')}`
    next.hidden = page.next === undefined
    next.onclick = () => {
      after = page.next
      guard(show)
    }
  }

  function disconnectButton(session) {
    const button = element('button', 'Disconnect')
    button.type = 'button'
    button.className = 'quiet'
    button.onclick = () => {
      button.disabled = true
      guard(async () => {
        await askJson('/api/disconnect', { body: { session } })
        // The list has it until its client has answered.
        button.replaceWith(element('span', 'ended'))
      })
    }
    return button
  }

  form.onsubmit = (event) => {
    event.preventDefault()
    after = undefined
    guard(show)
  }
  return { show, offer: (names) => offerTo(form.elements.node, names) }
}
