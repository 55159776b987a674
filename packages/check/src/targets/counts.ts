/** What was counted in one run, or in several. */
export interface Counts {
  /** Publishes that were answered. */
  acked: number
  /** What these had to bring: one for each listener. */
  expected: number
  /** Recoveries that the system has called complete. */
  recovered: number
  /** Times that it has said that messages may be missing. */
  toldGaps: number
  /** Acknowledged messages that did not come, where it said that messages may be missing. */
  toldLost: number
  /** Acknowledged messages that did not come, and nothing was said. */
  silentlyLost: number
  /** Messages that came again. */
  doubled: number
  /** Messages that came first after a later one of their publisher. */
  inverted: number
  /** Recoveries that it called complete, and an acknowledged message is missing there. */
  falselyRecovered: number
}

export function noCounts(): Counts {
  return {
    acked: 0,
    expected: 0,
    recovered: 0,
    toldGaps: 0,
    toldLost: 0,
    silentlyLost: 0,
    doubled: 0,
    inverted: 0,
    falselyRecovered: 0,
  }
}

export function addCounts(to: Counts, more: Counts): void {
  for (const name of Object.keys(more) as (keyof Counts)[]) to[name] += more[name]
}
