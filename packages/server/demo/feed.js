const MAX_LINES = 100
const MAX_PAYLOAD_CHARS = 300

/** Shows the newest messages first; at most {@link MAX_LINES}, drawn once per animation frame whatever the rate. */
export function createFeed(list) {
  let waiting = []
  let frame

  function push(line) {
    waiting.push(line)
    if (waiting.length > MAX_LINES) waiting.shift()
    if (frame === undefined) frame = requestAnimationFrame(draw)
  }

  function draw() {
    frame = undefined
    list.prepend(...waiting.reverse().map(toElement))
    waiting = []
    while (list.childElementCount > MAX_LINES) list.lastElementChild.remove()
  }

  return {
    add: (key, payload, isReplayed) => push({ key, payload, isReplayed, at: new Date() }),
    note: (text) => push({ note: text }),
  }
}

function toElement({ key, payload, isReplayed, at, note }) {
  const line = document.createElement('li')
  if (note !== undefined) {
    line.className = 'note'
    line.textContent = note
    return line
  }
  const text = typeof payload === 'string' ? payload : JSON.stringify(payload)
  line.append(
    cell('span', 'key', key),
    cell('span', 'payload', text.slice(0, MAX_PAYLOAD_CHARS)),
    cell('time', '', `${isReplayed ? '↻ ' : ''}${at.toLocaleTimeString('en-GB')}`),
  )
  return line
}

function cell(tag, className, text) {
  const element = document.createElement(tag)
  element.className = className
  element.textContent = text
  return element
}
