/** Blocks the event loop, as a process does that gets no processor. */
export function standStill(durationMs: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, durationMs)
}
