import {
  type Arrow,
  clipped,
  MAX_ARROWS,
  type Mark,
  marksWithin,
  type RowSpan,
  type Timeline,
} from '../report/timeline.js'
import type { Wrong } from './count.js'
import type { TimedEvent, TimedHeard, TimedPlay } from './record.js'
import type { Schedule, Step } from './schedule.js'

const BEFORE_MS = 2_500
const AFTER_MS = 2_500
const MAX_MS = 9_000

/** What led to a wrong: nodes and links with their faults, the publisher, and all listeners. */
export function targetTimeline(played: TimedPlay, { steps }: Schedule, wrong: Wrong): Timeline {
  const { rule, listener: owner, channel, number } = wrong
  const sent = played.published.find((each) => each.channel === channel && each.number === number)
  const heard = played.listeners.find(({ name }) => name === owner)
  const isIt = (event: TimedEvent) => event.what === 'message' && event.channel === channel && event.number === number
  const isMissed = rule === 'silently-lost' || rule === 'falsely-recovered'
  const sentAtMs = sent?.sentAtMs ?? 0
  const nextAtMs = nextAfter(heard, channel, number, sentAtMs)
  const wrongAtMs = isMissed ? Math.max(sentAtMs, nextAtMs - 1) : (heard?.events.findLast(isIt)?.atMs ?? sentAtMs)
  const fromMs = Math.max(0, sentAtMs - BEFORE_MS)
  const untilMs = Math.min(Math.max(sentAtMs + AFTER_MS, nextAtMs + 500, wrongAtMs + 500), fromMs + MAX_MS)
  const within = (marks: readonly Mark[]) => marksWithin(marks, fromMs, untilMs, sentAtMs)
  const spansOf = (mine: (step: Step) => boolean) =>
    steps.filter(mine).flatMap((step) => clipped(spanOf(step), fromMs, untilMs))
  const nodes = [...new Set(steps.flatMap((step) => ('node' in step ? [step.node] : [])))].sort()
  const published = played.published.filter((each) => each.channel === channel)
  const rows = [
    ...nodes.map((node) => ({
      name: `node ${node}`,
      isFaint: false,
      spans: spansOf((step) => 'node' in step && step.node === node),
      marks: [] as Mark[],
    })),
    {
      name: `publisher ${channel}`,
      isFaint: false,
      spans: [] as RowSpan[],
      marks: within(
        published.map(
          ({ number: each, outcome, sentAtMs: atMs }): Mark => ({
            atMs,
            kind: outcome === 'acked' ? 'publish' : 'unsettled',
            title: `${channel} ${each}: ${outcome}`,
            ...(each === number ? { label: `message ${each}` } : {}),
          }),
        ),
      ),
    },
    ...played.listeners.map(({ name, events }, index) => ({
      name: name.replace('-', ' '),
      isFaint: name !== owner,
      spans: spansOf((step) => 'listener' in step && step.listener === index),
      marks: within(events.filter((event) => event.channel === undefined || event.channel === channel).flatMap(markOf)),
    })),
  ]
  const [from, to] = [nodes.length, rows.findIndex(({ name }) => name === owner.replace('-', ' '))]
  const mark: Mark = isMissed
    ? { atMs: wrongAtMs, kind: 'missed', title: rule, label: 'never came' }
    : { atMs: wrongAtMs, kind: 'wrong', title: rule, label: rule }
  const arrows = arrowsOf(published, heard, channel, { from, to, fromMs, untilMs })
  if (isMissed) arrows.push({ from: { row: from, atMs: sentAtMs }, to: { row: to, atMs: wrongAtMs }, isMissed })
  return {
    title: `${rule}: ${channel} ${number} at ${owner}`,
    ...{ fromMs, untilMs, arrows },
    rows: rows.map((row, index) => (index === to ? { ...row, marks: [...row.marks, mark] } : row)),
  }
}

function nextAfter(heard: TimedHeard | undefined, channel: string, number: number, fromMs: number): number {
  const next = heard?.events.find(
    (event) => event.what === 'message' && event.channel === channel && event.number > number && event.atMs > fromMs,
  )
  return next?.atMs ?? fromMs
}

function spanOf(step: Step): RowSpan {
  const label = 'moves' in step && step.moves ? `${step.what}, then to the other node` : step.what
  // A node that is stopped in order is back when it has started: nobody knows when.
  return { fromMs: step.atMs, untilMs: step.atMs + Math.max(step.forMs, 60), kind: 'fault', label }
}

function markOf(event: TimedEvent): Mark[] {
  const { atMs } = event
  switch (event.what) {
    case 'message':
      return [{ atMs, kind: 'delivery', title: `${event.channel} ${event.number}` }]
    case 'told':
      return [
        event.isRecovered ? { atMs, kind: 'recovered', title: 'recovered' } : { atMs, kind: 'gap', title: 'gap told' },
      ]
    case 'back':
      return []
  }
}

function arrowsOf(
  published: TimedPlay['published'],
  heard: TimedHeard | undefined,
  channel: string,
  { from, to, fromMs, untilMs }: { from: number; to: number; fromMs: number; untilMs: number },
): Arrow[] {
  const sent = new Map(published.map(({ number, sentAtMs }) => [number, sentAtMs]))
  return (heard?.events ?? [])
    .flatMap((event): Arrow[] => {
      if (event.what !== 'message' || event.channel !== channel) return []
      const sentAtMs = sent.get(event.number) ?? -1
      if (sentAtMs < fromMs || event.atMs > untilMs) return []
      return [{ from: { row: from, atMs: sentAtMs }, to: { row: to, atMs: event.atMs }, isMissed: false }]
    })
    .slice(0, MAX_ARROWS)
}
