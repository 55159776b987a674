/** Milliseconds of a clock that is never set: deadlines do not move with the system's time. */
export function nowMs(): number {
  return (globalThis.performance ?? Date).now()
}
