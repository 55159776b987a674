import { expect, it } from 'vitest'
import { examine } from '../src/judging/judge.js'
import { pageOf } from '../src/report/page.js'
import { timelineOf } from '../src/report/run-timeline.js'
import { Tally } from '../src/report/tally.js'
import { timelineSvg } from '../src/report/timeline-svg.js'
import { HistoryBuilder, RULES } from './history-builder.js'

const SCHEDULE = {
  seed: 7,
  broker: 'given',
  theme: '<theme>',
  lengthMs: 1_000,
  logged: 'all',
  readers: [],
  listeners: [],
  publishers: [],
  server: { historyMaxMessages: 1, brokerHeartbeatMs: 1 },
  steps: [{ atMs: 100, forMs: 200, what: 'client-link', link: 0, fault: 'cut' }],
} as const

/** Of `count` messages, the one in the middle does not come. */
function losing(count: number) {
  const history = new HistoryBuilder()
  const listener = history.listener('l', 'a.x').listens('e:1.AAAAB')
  const messages = Array.from({ length: count }, (_, index) => {
    const position = `e:${(index + 2).toString(36)}.AAAAB`
    return { message: history.publish('a.x', position), position, isLost: index === Math.floor(count / 2) }
  })
  for (const { message, position, isLost } of messages) if (!isLost) listener.live(message, position)
  const record = history.end()
  return { record, ...examine(record, RULES) }
}

it('draws a missed message from its publisher to the listener', () => {
  const { record, violations } = losing(3)
  const [lost] = violations
  if (lost === undefined) throw new Error('nothing is lost')
  const { rows, arrows } = timelineOf(record, lost)
  const [missed, ...others] = arrows.filter(({ isMissed }) => isMissed)
  expect(others).toEqual([])
  expect([rows[missed?.from.row ?? -1]?.name, rows[missed?.to.row ?? -1]?.name]).toEqual(['p', 'l'])
  const marks = rows.flatMap((row) => row.marks)
  expect(marks.filter(({ kind }) => kind === 'missed')).toMatchObject([{ label: 'never came' }])
  expect(marks.filter(({ label }) => label === 'message 1')).toHaveLength(1)
  expect(marks.filter(({ kind }) => kind === 'delivery')).toHaveLength(2)
})

it('stays small, however much a run has seen', () => {
  const { record, violations } = losing(3_000)
  const [lost] = violations
  if (lost === undefined) throw new Error('nothing is lost')
  const timeline = timelineOf(record, lost)
  expect(Math.max(...timeline.rows.map(({ marks }) => marks.length))).toBeLessThanOrEqual(401)
  expect(timeline.arrows.filter(({ isMissed }) => isMissed)).toHaveLength(1)
  expect(timelineSvg(timeline).length).toBeLessThan(250_000)
})

it('counts what each promise was held against, and shows texts as texts', () => {
  const tally = new Tally('shared')
  const played = { schedule: SCHEDULE, ...losing(3) }
  tally.add(played, 1_000)
  tally.fail(played, true)
  const facts = [['node-0', '<b>']] as const
  const outcome = tally.outcome({ target: '<script>', command: "'&'", version: '1', beganAt: 'now', tookMs: 1, facts })
  expect(outcome).toMatchObject({ verdict: 'violated', counts: { publishes: 3, deliveries: 2 } })
  expect(outcome.promises.find(({ rule }) => rule === 'lost')).toMatchObject({ checks: 3 })
  expect(outcome.promises.find(({ rule }) => rule === 'twice')).toMatchObject({ checks: 2, violations: 0 })
  expect(outcome.promises.find(({ rule }) => rule === 'gap-untold')?.checks).toBe(0)
  const page = pageOf(outcome)
  expect(page).not.toMatch(/<script|<theme|<dd><b>/)
  expect(page).toContain('&lt;script&gt;')
  expect(page).toContain('cut client link 0, for 0.2 s')
})
