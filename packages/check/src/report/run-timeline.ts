import type { ConnectionRecord, ListenerRecord, MessageRecord, PublisherRecord, RunRecord } from '../judging/record.js'
import type { Played } from '../playing/play.js'
import { type Arrow, clipped, MAX_ARROWS, type Mark, marksWithin, type RowSpan, type Timeline } from './timeline.js'

type Failed = Played['violations'][number]

const BEFORE_MS = 2_500
const AFTER_MS = 2_500
const MAX_MS = 9_000
const EDGE_MS = 400
/** Of publishers and listeners that have no part in it. */
const MAX_FAINT_ROWS = 5

interface Window {
  readonly fromMs: number
  readonly untilMs: number
  readonly focusMs: number
}

/** What led to a violation: nodes with their faults, who published, and who missed it. */
export function timelineOf(record: RunRecord, violation: Failed): Timeline {
  const { owner, text, rule } = violation
  const found = messageIn(record, text)
  const listener = record.listeners.find(({ name }) => name === owner)
  const window = windowOf(record, violation, found?.message, listener)
  const { fromMs, untilMs } = window
  const nodes = [...new Set(record.connections.map(({ node }) => node))].sort()
  const publisher = found?.publisher ?? record.publishers.find(({ name }) => name === owner)
  const actors = [
    ...(publisher === undefined ? [] : [publisher.name]),
    ...(listener === undefined ? [] : [listener.name]),
  ]
  const others = [...record.publishers, ...record.listeners].map(({ name }) => name)
  const faint = others.filter((name) => !actors.includes(name)).slice(0, MAX_FAINT_ROWS)
  const stage = nodeRows(record, nodes, window)
  const rows = [...actors, ...faint].map((name, index) => ({
    name: shortName(name),
    isFaint: index >= actors.length,
    spans: connectionsOf(record, name, nodes).flatMap((span) => clipped(span, fromMs, untilMs)),
    marks: marksWithin(marksOf(record, name, found?.message.id), fromMs, untilMs, window.focusMs),
  }))
  const all = [...stage, ...rows]
  const rowOf = (name: string | undefined) => all.findIndex((row) => row.name === shortName(name ?? ''))
  const missed = missedMark(violation, found?.message, listener)
  const [from, to] = [rowOf(publisher?.name), rowOf(owner)]
  const arrows = publisher && listener ? arrowsOf(publisher, listener, { from, to }, window) : []
  const sentAtMs = found?.message.attempts[0]?.sentAtMs
  if (missed.kind === 'missed' && sentAtMs !== undefined && from >= 0 && to >= 0) {
    arrows.push({ from: { row: from, atMs: sentAtMs }, to: { row: to, atMs: missed.atMs }, isMissed: true })
  }
  return {
    title: `${rule}: ${text}`,
    fromMs,
    untilMs,
    rows: all.map((row, index) =>
      index === Math.max(0, to) ? { ...row, isFaint: false, marks: [...row.marks, clampTo(missed, window)] } : row,
    ),
    arrows,
  }
}

/** Names of actors begin with the word of the run. */
function shortName(name: string): string {
  return name.replace(/^.*-(?=(publisher|listener|reader|member|writer|viewer)-\d+$)/, '').replace(/-(?=\d+$)/, ' ')
}

/** The first message that a text names. */
function messageIn(
  { publishers }: RunRecord,
  text: string,
): { readonly message: MessageRecord; readonly publisher: PublisherRecord } | undefined {
  const words = new Set(text.match(/[\w-]+/g) ?? [])
  for (const publisher of publishers) {
    const message = publisher.messages.find(({ id }) => words.has(id))
    if (message !== undefined) return { message, publisher }
  }
  return undefined
}

function windowOf(
  { endedAtMs, publishers }: RunRecord,
  { atMs }: Failed,
  message: MessageRecord | undefined,
  listener: ListenerRecord | undefined,
): Window {
  const focusMs = message?.attempts[0]?.sentAtMs ?? Math.min(atMs, endedAtMs)
  // With what the listener got next: a message is missing between two others.
  const next = listener?.events.find((event) => event.what === 'message' && event.atMs > focusMs + 200)?.atMs ?? focusMs
  // Nothing is shown of the time in which everybody waits for the end.
  const lastMs = Math.max(...publishers.map(({ messages }) => messages.at(-1)?.attempts.at(-1)?.sentAtMs ?? 0), next)
  const wantedMs = Math.max(Math.min(focusMs + AFTER_MS, lastMs), next, focusMs) + EDGE_MS
  const fromMs = Math.max(0, focusMs - BEFORE_MS)
  return { fromMs, untilMs: Math.min(wantedMs, fromMs + MAX_MS), focusMs }
}

function nodeRows({ faults }: RunRecord, nodes: readonly string[], { fromMs, untilMs }: Window) {
  const spanOf = ({ name, fromMs: from, untilMs: until }: RunRecord['faults'][number]): RowSpan[] =>
    clipped({ fromMs: from, untilMs: until, kind: 'fault', label: name }, fromMs, untilMs)
  const row = (name: string, spans: RowSpan[], node?: number) => ({
    ...{ name: shortName(name), isFaint: false, spans, marks: [] as Mark[] },
    ...(node === undefined ? {} : { node }),
  })
  const common = faults.filter(({ node }) => node === undefined || !nodes.includes(node)).flatMap(spanOf)
  return [
    ...(common.length === 0 ? [] : [row('installation', common)]),
    ...nodes.map((name, index) => row(name, faults.filter(({ node }) => node === name).flatMap(spanOf), index)),
  ]
}

function connectionsOf({ connections, endedAtMs }: RunRecord, name: string, nodes: readonly string[]): RowSpan[] {
  return connections
    .filter(({ owner }) => owner === name)
    .flatMap((connection) => spansOf(connection, nodes.indexOf(connection.node), endedAtMs))
}

function spansOf({ welcomeAtMs, closed, stalls, node }: ConnectionRecord, index: number, endMs: number): RowSpan[] {
  if (welcomeAtMs === undefined) return []
  const untilMs = closed?.atMs ?? endMs
  return [
    { fromMs: welcomeAtMs, untilMs, kind: 'connection', node: index, label: `connected to ${node}` },
    ...stalls.map(
      ({ fromMs, untilMs: until = untilMs }): RowSpan => ({
        fromMs,
        untilMs: until,
        kind: 'stall',
        label: 'does not read',
      }),
    ),
  ]
}

function marksOf({ publishers, listeners }: RunRecord, name: string, focus: string | undefined): Mark[] {
  const publisher = publishers.find((each) => each.name === name)
  if (publisher !== undefined) {
    return publisher.messages.flatMap(({ id, key, attempts }) =>
      attempts.map(
        ({ sentAtMs, outcome, isDuplicate }, index): Mark => ({
          atMs: sentAtMs,
          kind: outcome === 'ok' ? 'publish' : 'unsettled',
          title: `${id} to ${key}: ${outcome}${isDuplicate ? ', duplicate' : ''}`,
          ...(id === focus && index === 0 ? { label: shortId(id) } : {}),
        }),
      ),
    )
  }
  return listeners.find((each) => each.name === name)?.events.flatMap(markOf) ?? []
}

function markOf(event: ListenerRecord['events'][number]): Mark[] {
  const { atMs } = event
  if (event.what === 'message') {
    const kind = event.listen === undefined || event.isReplay === false ? 'delivery' : 'replay'
    return [{ atMs, kind, title: `${event.id} of ${event.key} at ${event.position}` }]
  }
  if (event.what === 'gap') return [{ atMs, kind: 'gap', title: `gap: ${event.reason}` }]
  if (event.what !== 'ok') return []
  if (event.gap !== undefined) return [{ atMs, kind: 'gap', title: `gap: ${event.gap}` }]
  return event.isRecovered ? [{ atMs, kind: 'recovered', title: 'recovered' }] : []
}

function arrowsOf(
  { messages }: PublisherRecord,
  { events }: ListenerRecord,
  { from, to }: { readonly from: number; readonly to: number },
  { fromMs, untilMs }: Window,
): Arrow[] {
  const sent = new Map(messages.map(({ id, attempts }) => [id, attempts[0]?.sentAtMs ?? 0]))
  return events
    .flatMap((event): Arrow[] => {
      const isLive = event.what === 'message' && event.listen === undefined
      const sentAtMs = isLive ? sent.get(event.id) : undefined
      if (sentAtMs === undefined || sentAtMs < fromMs || event.atMs > untilMs) return []
      return [{ from: { row: from, atMs: sentAtMs }, to: { row: to, atMs: event.atMs }, isMissed: false }]
    })
    .slice(0, MAX_ARROWS)
}

/** What did not come stands where it would have come: right after its publish, or where its neighbour came. */
function missedMark({ rule, atMs, text }: Failed, message: MessageRecord | undefined, listener?: ListenerRecord): Mark {
  if (rule !== 'lost' || message === undefined || listener === undefined)
    return { atMs, kind: 'wrong', title: text, label: rule }
  const ackedAtMs = message.attempts.find(({ outcome }) => outcome === 'ok')?.settledAtMs ?? atMs
  const next = listener.events.find((event) => event.what === 'message' && event.atMs >= ackedAtMs)
  return { atMs: Math.max(ackedAtMs, (next?.atMs ?? ackedAtMs) - 1), kind: 'missed', title: text, label: 'never came' }
}

function clampTo(mark: Mark, { fromMs, untilMs }: Window): Mark {
  return { ...mark, atMs: Math.min(untilMs, Math.max(fromMs, mark.atMs)) }
}

function shortId(id: string): string {
  return `message ${id.slice(id.lastIndexOf('-') + 1)}`
}
