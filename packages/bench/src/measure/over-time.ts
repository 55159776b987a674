/** Shorter steps would show the clock of `/proc`, which ticks a hundred times per second. */
const MIN_STEP_MS = 1_000
/** A longer run has longer steps. */
const MAX_STEPS = 600

/** Time between two looks at a window of this length. */
export function stepMsOf(durationMs: number): number {
  return Math.max(MIN_STEP_MS, Math.ceil(durationMs / MAX_STEPS))
}

/** Counts, such as messages or CPU seconds, up to one moment; `null`: not known. */
export interface Moment<Name extends string> {
  readonly atMs: number
  readonly counts: Readonly<Record<Name, number | null>>
}

/** How much a count grew per second, from each moment to the next. */
export function growthPerSecond<Name extends string>(
  moments: readonly Moment<Name>[],
  name: NoInfer<Name>,
): (number | null)[] {
  return moments.slice(1).map(({ atMs, counts }, index) => {
    const before = moments[index]
    const [from, to] = [before?.counts[name] ?? null, counts[name]]
    if (before === undefined || from === null || to === null || atMs <= before.atMs) return null
    return ((to - from) * 1_000) / (atMs - before.atMs)
  })
}
