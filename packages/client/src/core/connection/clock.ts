/** Milliseconds of a clock that is never set: deadlines do not move with the system's time. */
export function nowMs(): number {
  return (globalThis.performance ?? Date).now()
}

/** The age in milliseconds of what begins now, by the clock that says more: that one stands still while a device sleeps. */
export function startAge(): () => number {
  const since = nowMs()
  const date = Date.now()
  return () => Math.max(nowMs() - since, Date.now() - date)
}
