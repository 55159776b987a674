/** A hidden or covered page gets no animation frames. */
const HIDDEN_MS = 1_000

/** The time of a frame where there are none, as in Node. */
const FRAME_MS = 16

/** Calls `action` once: at the next animation frame, or after a time. Returns a function that cancels it. */
export function nextFrame(when: 'frame' | number, action: () => void): () => void {
  const hasFrames = when === 'frame' && typeof requestAnimationFrame === 'function'
  const cancel = () => {
    clearTimeout(timer)
    if (hasFrames) cancelAnimationFrame(frame)
  }
  const run = () => {
    cancel()
    action()
  }
  const timer = setTimeout(run, hasFrames ? HIDDEN_MS : when === 'frame' ? FRAME_MS : when)
  const frame = hasFrames ? requestAnimationFrame(run) : 0
  return cancel
}
