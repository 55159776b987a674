import { workerData } from 'node:worker_threads'
import { nowUs } from '../measure/clock.js'
import type { PacerThreadData } from './turn-pacer.js'

/** Thread of a `TurnPacer`. Its event loop never turns; it sleeps until the next message is due. */
const { port, state, startUs, intervalUs } = workerData as PacerThreadData

for (let tick = 0; Atomics.load(state, 0) === 0; ) {
  const waitUs = startUs + tick * intervalUs - nowUs()
  if (waitUs > 0) {
    Atomics.wait(state, 0, 0, waitUs / 1_000)
    continue
  }
  // One wake-up at a time: a busy event loop then finds all due messages.
  if (Atomics.exchange(state, 1, 1) === 0) port.postMessage(null)
  tick = Math.floor((nowUs() - startUs) / intervalUs) + 1
}
