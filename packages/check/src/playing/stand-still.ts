import type { FaultRecord } from '../judging/record.js'

const TICK_MS = 100
/** A schedule pauses its nodes and brokers for longer. The shortest heartbeat is as long. */
const LEAST_MS = 1_000
const NAME = 'the machine stands still'

/**
 * Notes as a fault when this process did not run for a second or longer: of a machine that stood still, or was too busy,
 * times say nothing. Returns a call that ends it.
 */
export function watchStandStill(faults: FaultRecord[], nowMs: () => number): () => void {
  let lastMs = nowMs()
  const timer = setInterval(() => {
    const now = nowMs()
    if (now - lastMs >= LEAST_MS) {
      const touches = ['client-links', 'broker-links', 'peer-links', 'node', 'broker'] as const
      faults.push({ name: NAME, fromMs: lastMs, untilMs: now, touches })
    }
    lastMs = now
  }, TICK_MS)
  return () => clearInterval(timer)
}

/** How long the machine stood still since a time. */
export function stoodStillMs(faults: readonly FaultRecord[], sinceMs: number): number {
  return faults
    .filter(({ name }) => name === NAME)
    .reduce((sum, { fromMs, untilMs }) => sum + Math.max(0, untilMs - Math.max(fromMs, sinceMs)), 0)
}
