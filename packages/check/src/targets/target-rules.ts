import type { Counts } from './counts.js'

/** What no system should do that calls a recovery complete, or says nothing. docs/checker.md has the same table. */
export const TARGET_RULES = {
  'silently-lost': {
    promise: 'Every acknowledged message comes to every listener, or the system says that some may be missing.',
    unless: 'Not of publishes that were refused or not answered.',
    of: 'expected',
    count: 'silentlyLost',
  },
  doubled: {
    promise: 'A listener gets a message once.',
    unless: 'Always judged.',
    of: 'expected',
    count: 'doubled',
  },
  inverted: {
    promise: 'Messages of one publisher come in the order of their publishes.',
    unless: 'Not of messages that come again.',
    of: 'expected',
    count: 'inverted',
  },
  'falsely-recovered': {
    promise: 'A recovery that the system calls complete is complete.',
    unless: 'Not of systems that say nothing of their recoveries.',
    of: 'recovered',
    count: 'falselyRecovered',
  },
} as const satisfies Readonly<
  Record<string, { promise: string; unless: string; of: keyof Counts; count: keyof Counts }>
>

export type TargetRule = keyof typeof TARGET_RULES

export function wrongsOf(counts: Counts): number {
  return Object.values(TARGET_RULES).reduce((sum, { count }) => sum + counts[count], 0)
}
