export interface DrainOptions {
  /** Everything that has arrived so far. */
  readonly arrivedCount: () => number
  /** The traffic has ended when nothing new arrives for this long. */
  readonly quietMs: number
  /** Abandoned after this long, even if messages still arrive. */
  readonly limitMs: number
  readonly pollMs: number
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
}

/** Waits until nothing arrives any more; tells whether it was abandoned. */
export async function drain(options: DrainOptions): Promise<{ readonly hasTimedOut: boolean }> {
  const { arrivedCount, quietMs, limitMs, pollMs, now, sleep } = options
  const startMs = now()
  let seenCount = arrivedCount()
  let seenMs = startMs
  while (now() - seenMs < quietMs) {
    if (now() - startMs >= limitMs) return { hasTimedOut: true }
    await sleep(pollMs)
    const count = arrivedCount()
    if (count === seenCount) continue
    seenCount = count
    seenMs = now()
  }
  return { hasTimedOut: false }
}
