import type { Violation } from '../../packages/check/src/judging/judge.js'
import { matches } from '../../packages/check/src/judging/keys.js'
import type { RunRecord } from '../../packages/check/src/judging/record.js'

/** A message, or the gap for it, may come so long after its `ok`: a node or a client connects again meanwhile. */
const LATE_MS = 5_000

/**
 * Messages that never came to a listener which has listened since before they were sent, and was told no gap then. The
 * judge knows what a listener misses by places in the log. These have none where nodes differ in what they log.
 */
export function missedInSilence({ listeners, publishers, endedAtMs }: RunRecord): Violation[] {
  const messages = publishers.flatMap((publisher) => publisher.messages)
  return listeners.flatMap(({ name, patterns, events }) => {
    const since = Math.max(...patterns.map((_, at) => events.find((event) => isOk(event, at))?.atMs ?? Infinity))
    const gapsMs = events.filter(isGap).map(({ atMs }) => atMs)
    const came = new Set(events.flatMap((event) => (event.what === 'message' ? [event.id] : [])))
    return messages.flatMap(({ id, key, attempts }): Violation[] => {
      const sentAtMs = attempts[0]?.sentAtMs ?? 0
      const okAtMs = attempts.find(({ outcome }) => outcome === 'ok')?.settledAtMs ?? Infinity
      // No node may be up until the end.
      const isBack = events.some(({ what, atMs }) => what !== 'asked' && what !== 'ended' && atMs > okAtMs)
      const isOwed = sentAtMs > since && isBack && okAtMs + LATE_MS < endedAtMs
      const isTold = gapsMs.some((gapMs) => gapMs > sentAtMs)
      if (!isOwed || isTold || came.has(id) || !patterns.some((pattern) => matches(pattern, key))) return []
      return [{ rule: 'lost', atMs: okAtMs, owner: name, text: `${id} of ${key} never came, without a gap` }]
    })
  })
}

type Event = RunRecord['listeners'][number]['events'][number]

function isGap(event: Event): boolean {
  return event.what === 'gap' || (event.what === 'ok' && !event.isRecovered)
}

function isOk(event: Event, listen: number): boolean {
  return event.what === 'ok' && event.listen === listen
}
