import { type Counts, noCounts } from './counts.js'
import type { Heard, HeardEvent, Played } from './record.js'
import type { TargetRule } from './target-rules.js'

/** One of what no system should do. */
export interface Wrong {
  readonly rule: TargetRule
  readonly listener: string
  readonly channel: string
  readonly number: number
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
