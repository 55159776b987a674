import { nameOf } from './faults.js'
import type { Played } from './play.js'
import type { ListenerEvent, RunRecord } from './record.js'

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

const MAX_VIOLATIONS_SHOWN = 8
const MAX_EVENTS_SHOWN = 16
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

/** What was violated, with what its owner was sent around it, and the faults. */
export function violationsOf({ schedule, record, violations }: Played): string {
  const shown = violations
    .slice(0, MAX_VIOLATIONS_SHOWN)
    .flatMap(({ rule, atMs, owner, text }) => [
      `  ${rule} at ${Math.round(atMs)} ms, ${owner}: ${text.slice(0, MAX_TEXT_CHARS)}`,
      ...(record === undefined ? [] : sliceOf(record, owner, atMs)),
    ])
  const more = violations.length - MAX_VIOLATIONS_SHOWN
  return [
    ...shown,
    ...(more > 0 ? [`  and ${more} more`] : []),
    '  steps:',
    ...schedule.steps.map((step) => `    ${Math.round(step.atMs)} ms, for ${step.forMs} ms: ${nameOf(step)}`),
  ].join('\n')
}

function sliceOf({ listeners }: RunRecord, owner: string, atMs: number): string[] {
  const events = listeners.find(({ name }) => name === owner)?.events ?? []
  const around = events.filter((event) => event.atMs >= atMs - BEFORE_MS && event.atMs <= atMs + AFTER_MS)
  const turning = around.filter(({ what }) => what !== 'message' && what !== 'pong')
  const near = around.filter((event) => Math.abs(event.atMs - atMs) < 50)
  const chosen = [...new Set([...turning, ...near])].sort((first, second) => first.atMs - second.atMs)
  return chosen.slice(-MAX_EVENTS_SHOWN).map((event) => `    ${describe(event)}`)
}

function describe({ atMs, connection, ...rest }: ListenerEvent): string {
  const { what, ...details } = rest
  return `${Math.round(atMs)} ms, connection ${connection}: ${what} ${JSON.stringify(details)}`
}

function countsOf(record: RunRecord | undefined): { publishes: number; deliveries: number; gaps: string[] } {
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
