/** Calls `act` in this turn of the event loop, when microtasks and all that they begin have come to rest. */
export function atRest(act: () => void): void {
  queueMicrotask(() => process.nextTick(act))
}
