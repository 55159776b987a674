import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { BrokerRow } from './brokers.js'
import { runCount } from './run-count.js'
import { type RunLimits, type RunReport, runSchedule } from './run-schedule.js'
import { type SchedulePlan, type StepWeights, schedules } from './schedule.js'
import type { TestSystem } from './system.js'

const LINK_FAULTS: StepWeights = { cut: 3, swallow: 1, stall: 1, switch: 2, renew: 2, listen: 2, 'move-publisher': 2 }

const MODES = ['once', 'once', 'twice'] as const

/** Time for which a smaller schedule that fails is looked for. */
const MAX_SHRINK_MS = 45_000

/** A kind of runs. */
interface Profile extends RunLimits, SchedulePlan {
  readonly title: string
  /** Runs of a soak unless more are asked for, and the part that is made when they are. */
  readonly runs: number
  readonly share: number
  /** With fewer, `check` could fail by chance. */
  readonly leastRuns?: number
  start(): Promise<TestSystem>
  /** What must hold of all runs together, so that they prove something. */
  check(totals: Totals): void
}

type Totals = Readonly<Record<string, number>>

/**
 * Random schedules of publishing and of everything that goes wrong, end to end: real nodes, real clients, a real broker. What each
 * subscription was given is what was published, in order and once, or it was told a gap in the place where something is missing.
 * Says what it has done, and how to do it again.
 */
export function randomSchedules(row: BrokerRow): void {
  describe(`${row.name}: delivered is published, or a gap was told`, () => {
    for (const profile of profilesOf(row)) {
      const runs = runCount(profile.runs, profile.share, profile.leastRuns)
      const timeout = 120_000 + runs * (2_000 + profile.settleTimeoutMs / 10)
      it(profile.title, { timeout }, () => runProfile(row, profile, runs))
    }
  })
}

function profilesOf(row: BrokerRow): Profile[] {
  const isMemory = row.name === 'memory'
  const base = { maxSteps: 6, maxMessages: 300, settleTimeoutMs: 10_000, isComplete: true, modes: MODES }
  const { startFaulty } = row
  const profiles: Profile[] = [
    {
      ...base,
      title: 'while clients and publishers are cut off, stall, move and begin anew',
      weights: LINK_FAULTS,
      runs: isMemory ? 100 : 40,
      share: 1,
      // A move tells a gap only if something was published meanwhile.
      ...(row.movesTellGap && { always: 'switch', leastRuns: 20 }),
      start: () => row.start('in-process'),
      check(totals) {
        if (row.movesTellGap) {
          expect(totals.gapCount).toBeGreaterThan(0)
          expect(totals.gapCount).toBe(totals.epochChangedCount)
        } else checkAllRecovered(totals)
      },
    },
    {
      ...base,
      isComplete: false,
      title: 'while the log is too small for what is missed',
      weights: LINK_FAULTS,
      runs: isMemory ? 50 : 20,
      share: 0.2,
      leastRuns: 20,
      start: () => row.start('in-process', { historyMaxMessages: 40 }),
      check: (totals) => expect(totals.gapCount).toBeGreaterThan(0),
    },
    {
      ...base,
      isComplete: false,
      title: 'while nothing is logged',
      weights: LINK_FAULTS,
      runs: isMemory ? 30 : 10,
      share: 0.1,
      start: () => row.start('in-process', isMemory ? { historyMaxMessages: 0 } : { history: [] }),
      check: (totals) => expect(totals).toMatchObject({ replayedCount: 0, recoveredCount: 0 }),
    },
    {
      ...base,
      isComplete: row.isLogShared,
      title: 'while nodes drain, stop and come back',
      weights: { ...LINK_FAULTS, 'restart-node': 6 },
      always: 'restart-node',
      runs: isMemory ? 20 : 10,
      share: 0.2,
      start: () => row.start('in-process'),
      check: (totals) => row.isLogShared && expect(totals).toMatchObject({ missedCount: 0, gapCount: 0 }),
    },
    {
      ...base,
      maxSteps: 4,
      maxMessages: 2_000,
      settleTimeoutMs: 20_000,
      isComplete: row.isLogShared,
      title: 'while nodes are killed',
      weights: { cut: 1, switch: 1, renew: 1, 'crash-node': 3 },
      always: 'crash-node',
      runs: 3,
      share: 0.03,
      start: () => row.start('processes'),
      check: (totals) => row.isLogShared && expect(totals).toMatchObject({ missedCount: 0, gapCount: 0 }),
    },
  ]
  if (row.movesTellGap) {
    profiles.push({
      ...base,
      clientsStay: true,
      title: 'while clients are cut off, stall and begin anew, and come back to their node',
      weights: LINK_FAULTS,
      runs: 40,
      share: 1,
      start: () => row.start('in-process'),
      check: checkAllRecovered,
    })
  }
  if (startFaulty !== undefined) {
    profiles.push({
      ...base,
      maxSteps: 3,
      maxMessages: 2_000,
      settleTimeoutMs: 30_000,
      isComplete: false,
      title: 'while the broker is killed, restarted and cut off',
      weights: { cut: 1, switch: 1, renew: 1, 'break-broker': 5 },
      always: 'break-broker',
      runs: row.name === 'rabbitmq' ? 3 : 6,
      share: 0.03,
      start: () => startFaulty(),
      check: (totals) => expect(totals['break-broker']).toBeGreaterThan(0),
    })
  }
  return profiles
}

/** The log holds everything: no listener has to be told of a gap, and each is given what it missed. */
function checkAllRecovered(totals: Totals): void {
  expect(totals).toMatchObject({ missedCount: 0, gapCount: 0 })
  expect(totals.recoveredCount).toBeGreaterThan(0)
}

async function runProfile(row: BrokerRow, profile: Profile, numRuns: number): Promise<void> {
  const seed = Number(process.env.WEBMQ_TEST_SEED ?? randomInt(2 ** 31 - 1))
  const { title } = profile
  const system = await profile.start()
  onTestFinished(() => system.stop())
  const totals: Record<string, number> = {}
  const beganAtMs = performance.now()
  let failedAtMs = Number.POSITIVE_INFINITY
  await fc.assert(
    fc.asyncProperty(schedules(profile), async (schedule) => {
      // What follows a failure are smaller schedules that may fail as well; that they pass ends the search.
      if (performance.now() > failedAtMs + MAX_SHRINK_MS) return
      const report = await runSchedule(system, schedule, profile)
      addUp(totals, report)
      if (report.violations.length > 0) failedAtMs = Math.min(failedAtMs, performance.now())
      expect(report.violations).toEqual([])
    }),
    { numRuns, seed },
  )
  const tookMs = Math.round(performance.now() - beganAtMs)
  process.stdout.write(
    `${row.name}, ${title}: seed ${seed}, ${numRuns} runs in ${tookMs} ms: ${JSON.stringify(totals)}\n`,
  )
  profile.check(totals)
}

function addUp(totals: Record<string, number>, { violations: _, stepCounts, ...counts }: RunReport): void {
  for (const [name, count] of [...Object.entries(counts), ...stepCounts]) totals[name] = (totals[name] ?? 0) + count
}
