import { askJson } from './api.js'
import { count, element, fillTable } from './elements.js'

/** Connections of the node that answers: search, pages, and a way to end one. */
export function createConnections(guard) {
  const section = document.querySelector('#connections')
  const form = section.querySelector('form')
  const next = section.querySelector('.next')
  let after

  async function show() {
    const { by, value } = Object.fromEntries(new FormData(form))
    const query = { limit: 50, after, ...(by === '' || value === '' ? {} : { [by]: value }) }
    const page = await askJson('/api/connections', { query })
    const rows = page.connections.map((connection) => [
      connection.session,
      connection.user,
      connection.address,
      new Date(connection.openedAt).toLocaleString(),
      `${count(connection.listenCount)}: ${connection.listens.join(' ')}`,
      disconnectButton(connection.session),
    ])
    fillTable(section.querySelector('table'), ['session', 'user', 'address', 'since', 'listens', ''], rows)
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

  form.onsubmit = (event) => {
    event.preventDefault()
    after = undefined
    guard(show)
  }
  return { show }
}
