/** One condition that all targets are measured under: a tier, and what else the scenario varies. */
export interface TrialCase {
  readonly mode: string
  readonly subscribers: number
  /** Further values that identify the row, by column key: `{ ratePerSecond: 100 }`. */
  readonly fields: Readonly<Record<string, number | string>>
}

export interface TrialStep<Target> {
  readonly testCase: TrialCase
  /** 1 is the first. */
  readonly repeat: number
  readonly target: Target
}

/**
 * Every measurement of a run, interleaved: under each condition all targets in all modes come in turn, once per repeat,
 * and every round starts with another one. Slow changes of the machine then affect all of them.
 * @param isMeasured Whether a target is measured under a condition; default: always.
 */
export function planTrials<Target>(
  cases: readonly TrialCase[],
  repeatCount: number,
  targets: readonly Target[],
  isMeasured: (testCase: TrialCase, target: Target) => boolean = () => true,
): TrialStep<Target>[] {
  const conditions = new Map<string, { testCase: TrialCase; target: Target }[]>()
  for (const testCase of cases) {
    const condition = JSON.stringify([testCase.subscribers, testCase.fields])
    const steps = targets.filter((target) => isMeasured(testCase, target)).map((target) => ({ testCase, target }))
    conditions.set(condition, [...(conditions.get(condition) ?? []), ...steps])
  }
  return [...conditions.values()].flatMap((steps, index) =>
    Array.from({ length: repeatCount }, (_, round) =>
      rotated(steps, index + round).map((step) => ({ ...step, repeat: round + 1 })),
    ).flat(),
  )
}

function rotated<T>(items: readonly T[], by: number): T[] {
  const first = items.length === 0 ? 0 : by % items.length
  return [...items.slice(first), ...items.slice(0, first)]
}

/** Name of a case in progress and errors: `uws, 1,000 connections, ratePerSecond 100`. */
export function caseTitle({ mode, subscribers, fields }: TrialCase, modeCount: number): string {
  return [
    ...(modeCount > 1 ? [mode] : []),
    `${subscribers.toLocaleString('en')} ${subscribers === 1 ? 'connection' : 'connections'}`,
    ...Object.entries(fields).map(([key, value]) => `${key} ${value.toLocaleString('en')}`),
  ].join(', ')
}
