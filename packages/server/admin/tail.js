import { ask, Refused } from './api.js'
import { element } from './elements.js'

const MAX_LINES = 200
const MAX_PAYLOAD_CHARS = 500
const RETRY_MS = 1_000

/** Follows a pattern, until it is stopped. */
export function createTail(guard) {
  const section = document.querySelector('#tail')
  const form = section.querySelector('form')
  const stop = section.querySelector('.stop')
  const list = section.querySelector('ol')
  let following

  async function follow(pattern) {
    end()
    const current = new AbortController()
    following = current
    stop.hidden = false
    try {
      while (!current.signal.aborted) {
        // The key is in a header, which an EventSource cannot send.
        const response = await ask('/admin/tail', { query: { pattern }, signal: current.signal })
        note(`following ${pattern}`)
        await readEvents(response.body, show).catch((error) => {
          if (!current.signal.aborted) note(`interrupted (${error.message}); messages may be missing`)
        })
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
    } catch (error) {
      if (error instanceof Refused) end()
      if (!current.signal.aborted || error instanceof Refused) throw error
    }
  }

  function end() {
    following?.abort()
    following = undefined
    stop.hidden = true
  }

  function show(event, data) {
    if (event === 'gap') note(`gap: messages may be missing (${data.reason})`)
    if (event !== 'message') return
    const payload = data.payloadBase64 === undefined ? JSON.stringify(data.payload) : `base64:${data.payloadBase64}`
    const time = element('time', new Date().toLocaleTimeString('en-GB'))
    add([element('span', data.key, 'key'), element('span', payload.slice(0, MAX_PAYLOAD_CHARS), 'payload'), time])
  }

  const note = (text) => add([text], 'note')

  function add(parts, className = '') {
    const line = document.createElement('li')
    line.className = className
    line.append(...parts)
    list.prepend(line)
    while (list.childElementCount > MAX_LINES) list.lastElementChild.remove()
  }

  form.onsubmit = (event) => {
    event.preventDefault()
    guard(() => follow(new FormData(form).get('pattern')))
  }
  stop.onclick = end
  return { end }
}

/** Reads server-sent events. */
async function readEvents(body, handle) {
  let text = ''
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) throw new Error('the stream ended')
    text += value
    const blocks = text.split('\n\n')
    text = blocks.pop()
    for (const block of blocks) {
      const [, event] = /^event: (.*)$/m.exec(block) ?? []
      const [, data] = /^data: (.*)$/m.exec(block) ?? []
      if (event !== undefined && data !== undefined) handle(event, JSON.parse(data))
    }
  }
}
