import { invalid, MAX_TIMER_MS } from '../options.js'

/** A hidden page gets no animation frames. Its listeners are called this often. */
const HIDDEN_MS = 250

/** Calls `run` later. Returns a function that cancels the call. */
export type Schedule = (run: () => void) => () => void

/**
 * Makes the schedule of notifications.
 * @throws {WebMQError} `E_OPTION_INVALID`.
 */
export function scheduleOf(every: 'frame' | number | undefined): Schedule {
  if (every === undefined) return atEndOfTurn
  if (every === 'frame') return atFrame
  if (!(every >= 0 && every <= MAX_TIMER_MS)) throw invalid(`every ${every}`)
  return (run) => after(run, every)
}

function atEndOfTurn(run: () => void): () => void {
  let isCancelled = false
  queueMicrotask(() => isCancelled || run())
  return () => {
    isCancelled = true
  }
}

function after(run: () => void, ms: number): () => void {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}

/** Without a page there are no frames, only the time. */
function atFrame(run: () => void): () => void {
  const cancelTimer = after(() => {
    cancelFrame()
    run()
  }, HIDDEN_MS)
  const frame = globalThis.requestAnimationFrame?.(() => {
    cancelTimer()
    run()
  })
  const cancelFrame = () => {
    if (frame !== undefined) cancelAnimationFrame(frame)
  }
  return () => {
    cancelTimer()
    cancelFrame()
  }
}
