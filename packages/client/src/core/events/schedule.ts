import { invalid, MAX_TIMER_MS } from '../options.js'

/** A hidden or covered page gets no animation frames, but may show a count in its title. */
const HIDDEN_MS = 250

/** The time of a frame where there are none, as in Node. */
const FRAME_MS = 16

/** Calls `run` once, later. Returns a function that cancels the call. */
export type Schedule = (run: () => void) => () => void

/**
 * Makes the schedule of an option `every`: with the next frame, or after a time in milliseconds.
 * @throws {WebMQError} `E_OPTION_INVALID`.
 */
export function scheduleOf(every: 'frame' | number): Schedule {
  if (every === 'frame') return nextFrame
  if (!(every >= 0 && every <= MAX_TIMER_MS)) throw invalid(`every ${every}`)
  return (run) => after(run, every)
}

/** Calls `run` with the next animation frame, or after a time where none comes. */
export const nextFrame: Schedule = (run) => {
  const hasFrames = typeof requestAnimationFrame === 'function'
  const cancel = () => {
    cancelTimer()
    if (hasFrames) cancelAnimationFrame(frame)
  }
  const once = () => {
    cancel()
    run()
  }
  const cancelTimer = after(once, hasFrames ? HIDDEN_MS : FRAME_MS)
  const frame = hasFrames ? requestAnimationFrame(once) : 0
  return cancel
}

function after(run: () => void, ms: number): () => void {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}
