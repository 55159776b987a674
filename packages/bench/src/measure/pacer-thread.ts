import { workerData } from 'node:worker_threads'
import { nowUs } from './clock.js'
import type { PacerThreadData } from './pacer.js'

/** Thread of a `Pacer`. Its event loop never turns; it sleeps until the next message is due. */
const { port, state, startUs, periodUs, phasesUs } = workerData as PacerThreadData

for (let tick = 0; Atomics.load(state, 0) === 0; ) {
  const turn = Math.floor(tick / phasesUs.length)
  const waitUs = startUs + turn * periodUs + (phasesUs[tick % phasesUs.length] ?? 0) - nowUs()
  if (waitUs > 0) {
    Atomics.wait(state, 0, 0, waitUs / 1_000)
    continue
  }
  // One wake-up at a time: a busy event loop then finds all due messages.
  if (Atomics.exchange(state, 1, 1) === 0) port.postMessage(null)
  tick++
}
