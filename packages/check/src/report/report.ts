import type { ListenerEvent, RunRecord } from '../judging/record.js'
import { nameOf } from '../playing/faults.js'
import type { Played } from '../playing/play.js'

/** What runs have done and found, added up. */
export interface Totals {
  schedules: number
  publishes: number
  deliveries: number
  readonly gaps: Map<string, number>
  readonly violations: Map<string, number>
  /** Of schedules with violations. */
  readonly failedSeeds: number[]
}

const MAX_EVENTS_SHOWN = 8
const MESSAGES_AROUND = 2
/** Events this long before and after a violation are shown. */
const BEFORE_MS = 3_000
const AFTER_MS = 500
const MAX_TEXT_CHARS = 1_500

export function createTotals(): Totals {
  return { schedules: 0, publishes: 0, deliveries: 0, gaps: new Map(), violations: new Map(), failedSeeds: [] }
}

export function addTo(totals: Totals, { schedule, record, violations }: Played): void {
  totals.schedules++
  const { publishes, deliveries, gaps } = countsOf(record)
  totals.publishes += publishes
  totals.deliveries += deliveries
  for (const reason of gaps) count(totals.gaps, reason)
  for (const { rule } of violations) count(totals.violations, rule)
  if (violations.length > 0) totals.failedSeeds.push(schedule.seed)
}

/** One line about a schedule. */
export function lineOf(played: Played, tookMs: number): string {
  const { schedule, record, violations } = played
  const { publishes, deliveries, gaps } = countsOf(record)
  const found = new Map<string, number>()
  for (const { rule } of violations) count(found, rule)
  const verdict = violations.length === 0 ? 'ok' : `${violations.length} VIOLATIONS (${wordsOf(found)})`
  const done = `${publishes} publishes, ${deliveries} deliveries, ${gaps.length} gaps`
  const took = `${(tookMs / 1_000).toFixed(1)} s`
  return `${schedule.broker} seed ${schedule.seed}: ${verdict} · ${done} · ${took} · logged ${schedule.logged}, ${schedule.theme}`
}

export function summaryOf(broker: string, totals: Totals): string {
  const { schedules, publishes, deliveries, gaps, violations, failedSeeds } = totals
  const seeds = failedSeeds.length === 0 ? '' : `, seeds ${failedSeeds.join(', ')}`
  return [
    `${broker}: ${schedules} schedules, ${publishes} publishes, ${deliveries} deliveries`,
    `  gaps: ${gaps.size === 0 ? 'none' : wordsOf(gaps)}`,
    `  violations: ${violations.size === 0 ? '0' : `${wordsOf(violations)}${seeds}`}`,
  ].join('\n')
}

/** For a file. */
export function countedOf({ schedules, publishes, deliveries, gaps, violations, failedSeeds }: Totals) {
  const sum = (counts: ReadonlyMap<string, number>) => [...counts.values()].reduce((total, one) => total + one, 0)
  return { schedules, publishes, deliveries, gaps: sum(gaps), violations: sum(violations), failedSeeds }
}

/** The first violation of each rule, with what its owner was sent around it, and the steps. */
export function violationsOf({ schedule, record, violations }: Played): string {
  const first = new Map<string, Played['violations'][number]>()
  for (const violation of violations) if (!first.has(violation.rule)) first.set(violation.rule, violation)
  const shown = [...first.values()].flatMap(({ rule, atMs, owner, text }) => [
    `  ${rule} at ${Math.round(atMs)} ms, ${owner}: ${text.slice(0, MAX_TEXT_CHARS)}`,
    ...(record === undefined ? [] : sliceOf(record, owner, atMs)),
  ])
  return [
    ...shown,
    '  steps:',
    ...schedule.steps.map((step) => `    ${Math.round(step.atMs)} ms, for ${step.forMs} ms: ${nameOf(step)}`),
  ].join('\n')
}

/** The requests and answers of a listener around a time, and the nearest messages. */
function sliceOf({ listeners }: RunRecord, owner: string, atMs: number): string[] {
  const events = listeners.find(({ name }) => name === owner)?.events ?? []
  const turning = events.filter(
    (event) =>
      !['message', 'pong'].includes(event.what) && event.atMs >= atMs - BEFORE_MS && event.atMs <= atMs + AFTER_MS,
  )
  const after = events.findIndex((event) => event.atMs >= atMs)
  const near = after === -1 ? [] : events.slice(Math.max(0, after - MESSAGES_AROUND), after + MESSAGES_AROUND)
  const chosen = new Set([...turning.slice(-MAX_EVENTS_SHOWN), ...near])
  return events.filter((event) => chosen.has(event)).map((event) => `    ${describe(event)}`)
}

function describe({ atMs, connection, ...rest }: ListenerEvent): string {
  const { what, ...details } = rest
  return `${Math.round(atMs)} ms, connection ${connection}: ${what} ${JSON.stringify(details)}`
}

export function countsOf(record: RunRecord | undefined): { publishes: number; deliveries: number; gaps: string[] } {
  if (record === undefined) return { publishes: 0, deliveries: 0, gaps: [] }
  const events = record.listeners.flatMap((listener) => listener.events)
  const gaps = events.flatMap((event) => {
    if (event.what === 'gap') return [event.reason]
    return event.what === 'ok' && event.gap !== undefined ? [event.gap] : []
  })
  return {
    publishes: record.publishers.flatMap(({ messages }) => messages.flatMap(({ attempts }) => attempts)).length,
    deliveries: events.filter(({ what }) => what === 'message').length,
    gaps,
  }
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

function wordsOf(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([name, number]) => `${name} ${number}`).join(', ')
}
