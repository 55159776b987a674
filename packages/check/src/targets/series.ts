import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Service, startPostgres, startRedis } from 'webmq-services'
import { CannotRun } from '../exit-codes.js'
import { shrink } from '../playing/shrink.js'
import type { Failure, Outcome, PromiseRow, ScheduleRow, Shown } from '../report/outcome.js'
import { commandSystem } from './command.js'
import { count, type Wrong } from './count.js'
import { addCounts, type Counts, noCounts } from './counts.js'
import { playOn } from './play.js'
import type { TimedPlay } from './record.js'
import { drawSchedule, fewerSteps, type Schedule, type Step, THEMES, type Theme } from './schedule.js'
import type { System } from './system.js'
import { SYSTEMS } from './systems.js'
import { TARGET_RULES, type TargetRule, wrongsOf } from './target-rules.js'
import { targetTimeline } from './target-timeline.js'

/** Where a command is judged, nobody knows how to restart a node. */
const THEMES_OF_COMMANDS: readonly Theme[] = ['cut', 'move']

export interface TargetOptions {
  /** Of {@link SYSTEMS}, or a line for the shell. */
  readonly target: string
  /** Where the system of a command runs. */
  readonly urls: readonly string[]
  /** Schedules of each theme. */
  readonly count: number
  readonly seed: number
  readonly lengthMs: number
  /** A part of its name; empty: all. */
  readonly theme: string
  readonly parallelCount: number
  readonly shrinkMs: number
  readonly say: (text: string) => void
  readonly signal?: AbortSignal
}

const MAX_SHRINK_TRIES = 12
const MAX_FAILURES = 6
const NOT_FOUND = /Cannot find (?:package|module) '((?:@[^'/]+\/)?[^'/]+)/

/**
 * Plays the same schedules against any system.
 * @throws {CannotRun} when it, or a library for it, is not there.
 */
export async function judgeTarget(
  options: TargetOptions,
): Promise<Pick<Outcome, 'target' | 'facts' | 'verdict' | 'counts' | 'gaps' | 'promises' | 'schedules' | 'failures'>> {
  const { target, urls, theme, say } = options
  const obtain = SYSTEMS[target]
  const system = obtain === undefined ? commandSystem(target, urls) : await obtained(target, obtain)
  say(`${system.title}; ${system.settings}`)
  const themes = (obtain === undefined ? THEMES_OF_COMMANDS : THEMES).filter((each) => each.includes(theme))
  if (themes.length === 0) throw new CannotRun(`no theme has ${theme} in its name; there are ${THEMES.join(', ')}`)
  const series = new Series(system, options)
  try {
    for (const each of themes) await series.playTheme(each)
  } finally {
    system.stop?.()
  }
  return { target: system.title, facts: [['settings', system.settings]], ...series.outcome() }
}

async function obtained(target: string, obtain: () => Promise<System>): Promise<System> {
  try {
    return await obtain()
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    const [, name] = NOT_FOUND.exec(text) ?? []
    throw new CannotRun(
      name === undefined
        ? `${target} cannot be had here: ${text}`
        : `--target ${target} needs ${name}: npm install ${name}`,
    )
  }
}

class Series {
  readonly #system: System
  readonly #options: TargetOptions
  readonly #totals = noCounts()
  readonly #rows: ScheduleRow[] = []
  readonly #failures: Failure[] = []
  #shrinkLeftMs: number

  constructor(system: System, options: TargetOptions) {
    this.#system = system
    this.#options = options
    this.#shrinkLeftMs = options.shrinkMs
  }

  async playTheme(theme: Theme): Promise<void> {
    const { count: schedules, seed, lengthMs, parallelCount, signal } = this.#options
    const services: Service[] = []
    const folder = mkdtempSync(path.join(tmpdir(), 'webmq-check-'))
    const left = Array.from({ length: schedules }, (_, index) => drawSchedule(theme, seed + index, lengthMs))
    const lane = async () => {
      for (let schedule = left.shift(); schedule !== undefined && !signal?.aborted; schedule = left.shift()) {
        await this.#play(schedule, services, folder)
      }
    }
    try {
      if (this.#system.nodeProgram !== undefined) services.push(await startRedis({ isPrivate: true }))
      if (this.#system.needsPostgres === true)
        services.push(await startPostgres({ settings: { max_connections: '400' } }))
      const lanes = await Promise.allSettled(Array.from({ length: parallelCount }, lane))
      for (const each of lanes) if (each.status === 'rejected') throw each.reason
    } finally {
      await Promise.all(services.map((service) => service.stop()))
      rmSync(folder, { recursive: true, force: true })
    }
  }

  outcome(): Pick<Outcome, 'verdict' | 'counts' | 'gaps' | 'promises' | 'schedules' | 'failures'> {
    const { acked, expected, recovered, toldGaps, toldLost } = this.#totals
    return {
      verdict: wrongsOf(this.#totals) === 0 ? 'held' : 'violated',
      counts: {
        schedules: this.#rows.length,
        ...{ acknowledged: acked, 'to deliver': expected, recovered, 'gaps told': toldGaps, 'lost, told': toldLost },
      },
      gaps: {},
      promises: promisesOf(this.#totals),
      schedules: this.#rows,
      failures: this.#failures,
    }
  }

  async #play(schedule: Schedule, services: readonly Service[], folder: string): Promise<void> {
    const beganAtMs = performance.now()
    const played = await this.#playOnce(schedule, services, folder)
    const tookMs = performance.now() - beganAtMs
    const counts = count(played)
    addCounts(this.#totals, counts)
    const { seed, theme } = schedule
    const deliveries = played.listeners.flatMap(({ events }) => events.filter(({ what }) => what === 'message')).length
    this.#rows.push({
      ...{
        seed,
        theme,
        deliveries,
        tookMs,
        publishes: counts.acked,
        gaps: counts.toldGaps,
        violations: wrongsOf(counts),
      },
    })
    this.#options.say(`${theme} seed ${seed}: ${JSON.stringify(counts)}`)
    if (wrongsOf(counts) > 0 && this.#failures.length < MAX_FAILURES)
      await this.#fail(schedule, played, services, folder)
  }

  async #fail(schedule: Schedule, played: TimedPlay, services: readonly Service[], folder: string): Promise<void> {
    let smallest = { schedule, played }
    const rules = new Set(wrongsIn(played).map(({ rule }) => rule))
    const beganAtMs = performance.now()
    await shrink(schedule, {
      fails: async (candidate) => {
        const again = await this.#playOnce(candidate, services, folder)
        const isFailing = wrongsIn(again).some(({ rule }) => rules.has(rule))
        if (isFailing) smallest = { schedule: candidate, played: again }
        return isFailing
      },
      smallerThan: fewerSteps,
      maxTries: MAX_SHRINK_TRIES,
      maxMs: this.#shrinkLeftMs,
    })
    this.#shrinkLeftMs = Math.max(0, this.#shrinkLeftMs - (performance.now() - beganAtMs))
    this.#failures.push(failureOf(smallest.schedule, smallest.played, smallest.schedule !== schedule))
  }

  #namespaceCount = 0

  async #playOnce(schedule: Schedule, services: readonly Service[], folder: string): Promise<TimedPlay> {
    const namespace = `${schedule.theme}-${schedule.seed}-${++this.#namespaceCount}`
    const [redisUrl = '', postgresUrl] = services.map(({ url }) => url)
    return await playOn(this.#system, schedule, { redisUrl, postgresUrl, folder, namespace })
  }
}

function wrongsIn(played: TimedPlay): Wrong[] {
  const wrongs: Wrong[] = []
  count(played, (wrong) => wrongs.push(wrong))
  return wrongs
}

function promisesOf(totals: Counts): PromiseRow[] {
  return (Object.keys(TARGET_RULES) as TargetRule[]).map((rule) => {
    const { promise, unless, of, count: name } = TARGET_RULES[rule]
    return { rule, promise, unless, of, checks: totals[of], violations: totals[name] }
  })
}

function failureOf(schedule: Schedule, played: TimedPlay, isShrunk: boolean): Failure {
  const wrongs = wrongsIn(played)
  const rules = [...new Set(wrongs.map(({ rule }) => rule))]
  const violations = rules.flatMap((rule): Shown[] => {
    const wrong = wrongs.find((each) => each.rule === rule)
    if (wrong === undefined) return []
    const { channel, number, listener } = wrong
    const atMs = played.published.find((each) => each.channel === channel && each.number === number)?.sentAtMs ?? 0
    return [
      {
        ...{ rule, atMs, owner: listener.replace('-', ' '), promise: TARGET_RULES[rule].promise },
        text: `message ${number} of ${channel}`,
        count: wrongs.filter((each) => each.rule === rule).length,
        timeline: targetTimeline(played, schedule, wrong),
      },
    ]
  })
  const { seed, theme, steps } = schedule
  return { seed, theme, isShrunk, schedule, violations, steps: steps.map(wordsOf) }
}

function wordsOf(step: Step): string {
  const who = 'node' in step ? `node ${step.node}` : `the link of listener ${step.listener}`
  const moves = 'moves' in step && step.moves ? ', then to the other node' : ''
  return `${(step.atMs / 1_000).toFixed(1)} s ${step.what} ${who}${step.forMs > 0 ? `, for ${(step.forMs / 1_000).toFixed(1)} s` : ''}${moves}`
}
