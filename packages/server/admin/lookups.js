import { askJson } from './api.js'
import { count, fillTable } from './elements.js'

/** Calls `handle` with the fields of a form when it is submitted. */
function onSubmit(section, guard, handle) {
  section.querySelector('form').onsubmit = (event) => {
    event.preventDefault()
    guard(() => handle(Object.fromEntries(new FormData(event.target))))
  }
}

/** Patterns with the most listeners. */
export async function showPatterns() {
  const { patterns } = await askJson('/api/patterns', { query: { limit: 50 } })
  const rows = patterns.map(({ pattern, listeners }) => [pattern, count(listeners)])
  fillTable(document.querySelector('#patterns table'), ['pattern', 'listeners'], rows, 'Nobody listens.')
}

/** The forms that publish, and that look up history and presence of a key. */
export function createLookups(guard) {
  const publish = document.querySelector('#publish')
  onSubmit(publish, guard, async ({ key, payload }) => {
    const output = publish.querySelector('output')
    output.textContent = ''
    const { position = 'not logged' } = await askJson('/api/publish', { body: { key, payload: parsePayload(payload) } })
    output.textContent = `published, position ${position}`
  })

  const history = document.querySelector('#history')
  onSubmit(history, guard, async ({ key }) => {
    const { messages } = await askJson('/api/history', { query: { key, limit: 100, reverse: true } })
    const rows = messages.map(({ position, payload, base64 }) => [
      position,
      base64 === undefined ? JSON.stringify(payload) : `base64:${base64}`,
    ])
    fillTable(history.querySelector('table'), ['position', 'payload'], rows, 'The log has no message of this key.')
  })

  const presence = document.querySelector('#presence')
  onSubmit(presence, guard, async ({ key }) => {
    const { members } = await askJson('/api/presence', { query: { key } })
    const rows = members.map(({ id, userId, data }) => [id, userId, JSON.stringify(data)])
    fillTable(presence.querySelector('table'), ['member', 'user', 'data'], rows, 'Nobody is there.')
  })
}

/** JSON as it is, and anything else as a text. */
function parsePayload(text) {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
