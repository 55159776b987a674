import type { Company } from '../../packages/check/src/actors/company.js'
import type { Played } from '../../packages/check/src/playing/play.js'
import type { BrokerName, Schedule } from '../../packages/check/src/playing/schedule.js'
import { Stage } from './stage.js'
import { play } from './stage-play.js'

export interface SeriesOptions {
  readonly broker: BrokerName
  readonly schedules: readonly Schedule[]
  /** Schedules that are played at the same time, each with a broker of its own. */
  readonly parallelCount: number
  /** Default: actors that speak the protocol by themselves. */
  readonly company?: () => Company
  /** Called for each schedule when it has been played. */
  readonly played: (played: Played, tookMs: number) => void
}

/** Runs after which a broker, with what they left behind, is replaced by a new one. */
const PLAYS_PER_STAGE = 20

/** Plays all schedules. A broker serves several, one after another; after a violation it is replaced by a new one. */
export async function playSeries({ broker, schedules, parallelCount, company, played }: SeriesOptions): Promise<void> {
  const left = [...schedules]
  const lane = async () => {
    let stage: Stage | undefined
    let playCount = 0
    try {
      for (let schedule = left.shift(); schedule !== undefined; schedule = left.shift()) {
        stage ??= await Stage.start(broker)
        const startedAtMs = performance.now()
        const result = await playOn(stage, schedule, company?.())
        const tookMs = performance.now() - startedAtMs
        playCount++
        if (result.violations.length > 0 || playCount % PLAYS_PER_STAGE === 0) {
          await stage.stop()
          stage = undefined
        }
        played(result, tookMs)
      }
    } finally {
      await stage?.stop()
    }
  }
  const lanes = await Promise.allSettled(Array.from({ length: Math.min(parallelCount, schedules.length) }, lane))
  for (const each of lanes) if (each.status === 'rejected') throw each.reason
}

/** Plays a schedule on a stage of its own. */
export async function playAlone(schedule: Schedule, company?: Company): Promise<Played> {
  const { broker } = schedule
  if (broker === 'given') throw new Error('there is no stage for an installation that is running already')
  const stage = await Stage.start(broker)
  try {
    return await playOn(stage, schedule, company)
  } finally {
    await stage.stop()
  }
}

/** A schedule that cannot be played has failed. */
async function playOn(stage: Stage, schedule: Schedule, company?: Company): Promise<Played> {
  try {
    return await play(stage, schedule, company)
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    return { schedule, record: undefined, violations: [{ rule: 'play', atMs: 0, owner: 'stage', text }] }
  }
}
