/**
 * A clock that is read once per turn of the event loop, for what happens thousands of times in one. It is late by the
 * length of the turn at most.
 * @param now Unix time in milliseconds.
 */
export function turnClock(now: () => number = Date.now): () => number {
  let nowMs: number | undefined
  const forget = () => {
    nowMs = undefined
  }
  return () => {
    if (nowMs === undefined) {
      nowMs = now()
      process.nextTick(forget)
    }
    return nowMs
  }
}
