/** At most this many messages leave in one timer turn, so that a throttled tab does not burst when it wakes. */
const MAX_BATCH = 100
const TURN_MS = 50

/** Wires the publish form: once, or at a steady rate until it is stopped. */
export function createPublisher(form, { publish, onError }) {
  const button = form.querySelector('button')
  let timer

  function send() {
    const { key, payload } = form.elements
    Promise.resolve(publish(key.value, parsePayload(payload.value))).catch((error) => {
      stop()
      onError(error)
    })
  }

  function start(perSecond) {
    const started = performance.now()
    let sent = 0
    timer = setInterval(() => {
      const due = Math.floor(((performance.now() - started) / 1000) * perSecond) - sent
      for (let i = 0; i < Math.min(due, MAX_BATCH); i++) send()
      sent += due
    }, TURN_MS)
    button.textContent = 'Stop'
    button.classList.add('running')
  }

  function stop() {
    clearInterval(timer)
    timer = undefined
    button.textContent = 'Publish'
    button.classList.remove('running')
  }

  form.addEventListener('submit', (event) => {
    event.preventDefault()
    if (timer !== undefined) return stop()
    onError(undefined)
    const perSecond = Number(form.elements.rate.value)
    if (perSecond === 0) send()
    else start(perSecond)
  })
}

/** JSON when it is JSON, else the text itself; empty: the time, so that every message differs. */
function parsePayload(text) {
  if (text.trim() === '') return { at: new Date().toISOString() }
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
