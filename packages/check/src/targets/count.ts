import type { Heard, HeardEvent, Played } from './record.js'
import type { TargetRule } from './target-rules.js'

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

/** One of what no system should do. */
export interface Wrong {
  readonly rule: TargetRule
  readonly listener: string
  readonly channel: string
  readonly number: number
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

/** Holds what the listeners have got against what was acknowledged. A message without an answer may come or not. */
export function count({ published, listeners }: Played, wrong: (wrong: Wrong) => void = () => undefined): Counts {
  const counts = noCounts()
  const acked = published.filter(({ outcome }) => outcome === 'acked')
  counts.acked = acked.length
  counts.expected = acked.length * listeners.length
  for (const listener of listeners) {
    countTold(listener, counts)
    const falsely = new Set<HeardEvent>()
    for (const channel of new Set(published.map((each) => each.channel))) {
      const numbers = acked.filter((each) => each.channel === channel).map(({ number }) => number)
      const wrongOf = (rule: TargetRule, number: number) => wrong({ rule, listener: listener.name, channel, number })
      countChannel(listener, channel, numbers, counts, falsely, wrongOf)
    }
    counts.falselyRecovered += falsely.size
  }
  return counts
}

function countTold({ events }: Heard, counts: Counts): void {
  for (const event of events) {
    if (event.what !== 'told') continue
    if (event.isRecovered) counts.recovered++
    else counts.toldGaps++
  }
}

function countChannel(
  { events }: Heard,
  channel: string,
  acked: readonly number[],
  counts: Counts,
  falsely: Set<HeardEvent>,
  wrong: (rule: TargetRule, number: number) => void,
): void {
  const own = events.filter((event) => event.channel === undefined || event.channel === channel)
  const seen = new Set<number>()
  let newest = Number.NEGATIVE_INFINITY
  for (const event of own) {
    if (event.what !== 'message') continue
    if (seen.has(event.number)) {
      counts.doubled++
      wrong('doubled', event.number)
    } else if (event.number < newest) {
      counts.inverted++
      wrong('inverted', event.number)
    }
    seen.add(event.number)
    newest = Math.max(newest, event.number)
  }
  for (const number of acked) {
    if (seen.has(number)) continue
    const told = toldAround(own, number)
    if (told.some((event) => !event.isRecovered)) counts.toldLost++
    else {
      counts.silentlyLost++
      wrong('silently-lost', number)
      if (told.some((event) => !falsely.has(event))) wrong('falsely-recovered', number)
      for (const event of told) falsely.add(event)
    }
  }
}

/** What was said between the last message before a missing one, and the first after it. */
function toldAround(own: readonly HeardEvent[], missing: number): Extract<HeardEvent, { what: 'told' }>[] {
  const next = own.findIndex((event) => event.what === 'message' && event.number > missing)
  const before = next === -1 ? own : own.slice(0, next)
  const last = before.findLastIndex((event) => event.what === 'message')
  return before.slice(last + 1).filter((event) => event.what === 'told')
}
