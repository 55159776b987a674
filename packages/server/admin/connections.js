import { askJson } from './api.js'
import { count, element, fillTable } from './elements.js'

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
    fillTable(section.querySelector('table'), ['node', 'session', 'user', 'address', 'since', 'listens', ''], rows)
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

  /** The nodes to choose from. The chosen one stays chosen while it is there. */
  function offer(names) {
    const { node } = form.elements
    const options = ['all', ...names]
    if (Array.from(node.options, ({ value }) => value).join() === options.join()) return
    const chosen = node.value
    node.replaceChildren(...options.map((name) => new Option(name)))
    if (options.includes(chosen)) node.value = chosen
  }

  form.onsubmit = (event) => {
    event.preventDefault()
    after = undefined
    guard(show)
  }
  return { show, offer }
}
