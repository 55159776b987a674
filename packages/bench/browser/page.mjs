// The page of chromium.mjs: one client after another does the same work with the same messages.
import { CLIENTS } from './clients.mjs'

const KEYS = 100

/** What the page shows: a cell per key. */
const cells = new Map()
for (let key = 0; key < KEYS; key++) {
  const cell = document.createElement('span')
  document.body.append(cell, ' ')
  cells.set(`p.${key}`, cell)
}

let handledCount = 0
let lastSeq = 0

/** The work of each message. */
function show(key, { seq, price }) {
  handledCount++
  if (seq > lastSeq) lastSeq = seq
  cells.get(key).textContent = price
}

const frames = []

globalThis.bench = {
  connect: (name, url) => CLIENTS[name](url, show),
  /** Notes the time of each animation frame from now on. */
  watch() {
    const note = (time) => {
      frames.push(time)
      requestAnimationFrame(note)
    }
    requestAnimationFrame(note)
  },
  result: () => ({ handledCount, lastSeq, frames }),
}
