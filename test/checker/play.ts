import { setTimeout as sleep } from 'node:timers/promises'
import { type Cast, type Mishap, stopNode, takeSteps } from './faults.js'
import { judge, type Violation } from './judge.js'
import { Listener } from './listener.js'
import type { Node } from './node.js'
import { Publisher } from './publisher.js'
import { Reader } from './reader.js'
import { createRunRecord, type NodeAddress, type RunRecord } from './record.js'
import type { Rules } from './rules.js'
import type { Route, Schedule } from './schedule.js'
import { SeededRandom } from './seeded-random.js'
import { whatIsMissing } from './settled.js'
import type { Stage } from './stage.js'

/** What a schedule has come to. */
export interface Played {
  readonly schedule: Schedule
  /** Missing if it could not be played. */
  readonly record: RunRecord | undefined
  readonly violations: readonly (Violation | Mishap)[]
}

/** The server's default: a publish and a listen wait so long for the broker. */
const BROKER_TIMEOUT_MS = 5_000
/** A node that lost its broker waits at most so long between two attempts to reach it. */
const MAX_RECONNECT_MS = 5_000
/** What a machine that plays several schedules at once may add to a time. */
const SLACK_MS = 3_000
const DELIVER_WITHIN_MS = 2_500
const LIVE_WITHIN_MS = 10_000
/** For everybody to be live and to get everything, when the last fault is over. */
const SETTLE_TIMEOUT_MS = 25_000
const POLL_INTERVAL_MS = 150
/** The server's defaults. */
const DEDUPE = { windowMs: 120_000, maxIds: 100_000 }

let playCount = 0

/**
 * Plays a schedule: starts nodes and actors, takes the steps, heals everything, waits until every listener gets what is
 * published after that, and stops all of it. Then it judges. No process is left behind.
 */
export async function play(stage: Stage, schedule: Schedule): Promise<Played> {
  const nodes = stage.createNodes(schedule, `check-${process.pid}-${++playCount}`)
  try {
    await Promise.all(nodes.map((node) => node.start()))
    return await new Play(stage, schedule, nodes).run()
  } finally {
    await Promise.all(nodes.map((node) => node.kill()))
    stage.heal()
  }
}

class Play {
  readonly #stage: Stage
  readonly #schedule: Schedule
  readonly #nodes: readonly Node[]
  readonly #record = createRunRecord()
  readonly #beganAtMs = performance.now()

  constructor(stage: Stage, schedule: Schedule, nodes: readonly Node[]) {
    this.#stage = stage
    this.#schedule = schedule
    this.#nodes = nodes
  }

  async run(): Promise<Played> {
    const schedule = this.#schedule
    const listeners = schedule.listeners.map(
      (plan, index) => new Listener({ ...this.#actor(`listener-${index}`, plan), ...plan }),
    )
    const publishers = schedule.publishers.map(
      (plan, index) => new Publisher({ ...this.#actor(`publisher-${index}`, plan), ...plan }),
    )
    const readers = schedule.readers.map(
      (plan, index) => new Reader({ ...this.#actor(`reader-${index}`, plan), ...plan }),
    )
    const actors = [...listeners, ...publishers, ...readers]
    const record = this.#record
    const cast: Cast = { stage: this.#stage, nodes: this.#nodes, publishers, listeners, record, nowMs: this.#nowMs }
    const mishaps: Mishap[] = []
    try {
      for (const actor of actors) actor.start()
      mishaps.push(...(await takeSteps(schedule, cast)))
      await sleep(Math.max(0, schedule.lengthMs - this.#nowMs()))
      mishaps.push(...(await this.#settle(publishers, listeners)))
      record.endedAtMs = this.#nowMs()
    } finally {
      await Promise.all(actors.map((actor) => actor.stop()))
    }
    const stops = await Promise.all(this.#nodes.map((node) => stopNode(node, this.#nowMs)))
    return {
      schedule,
      record,
      violations: [...judge(record, this.#rules), ...mishaps, ...stops.flat(), ...this.#deaths()],
    }
  }

  readonly #nowMs = (): number => performance.now() - this.#beganAtMs

  /** Waits until everybody is live and gets what is published from now on. */
  async #settle(publishers: readonly Publisher[], listeners: readonly Listener[]): Promise<Mishap[]> {
    const fromMs = this.#nowMs()
    const deadlineMs = fromMs + SETTLE_TIMEOUT_MS
    const missing = () => [
      ...listeners.filter(({ isLive }) => !isLive).map(({ record }) => ({ owner: record.name, text: 'is not live' })),
      ...whatIsMissing(this.#record, fromMs),
    ]
    while (missing().length > 0 && this.#nowMs() < deadlineMs) await sleep(POLL_INTERVAL_MS)
    const late = missing()
    for (const publisher of publishers) publisher.pause()
    const unsettled = () => publishers.filter(({ isSettled }) => !isSettled)
    while (unsettled().length > 0 && this.#nowMs() < deadlineMs + BROKER_TIMEOUT_MS) await sleep(POLL_INTERVAL_MS)
    late.push(...unsettled().map(({ record }) => ({ owner: record.name, text: 'has publishes that are not answered' })))
    // The last messages have their time, too.
    await sleep(DELIVER_WITHIN_MS)
    const atMs = this.#nowMs()
    return late.map(({ owner, text }) => ({
      rule: 'settle',
      atMs,
      owner,
      text: `${text}, ${Math.round(SETTLE_TIMEOUT_MS / 1_000)} s after the last fault`,
    }))
  }

  get #rules(): Rules {
    const { logged, server } = this.#schedule
    const { log, isDurable } = this.#stage.row
    const isShared = log === 'shared' && logged !== 'none'
    return {
      logged: this.#stage.loggedPatterns(logged),
      log: log === false || logged === 'none' ? 'none' : log,
      isDurable,
      keeps: { messageCount: server.historyMaxMessages, ageMs: Number.POSITIVE_INFINITY },
      dedupe: { ...DEDUPE, coversUnlogged: false, isExact: isShared },
      answerWithinMs: BROKER_TIMEOUT_MS + SLACK_MS,
      liveWithinMs: LIVE_WITHIN_MS,
      deliverWithinMs: DELIVER_WITHIN_MS,
      settleMs: 2 * server.brokerHeartbeatMs + MAX_RECONNECT_MS + SLACK_MS,
    }
  }

  #deaths(): Mishap[] {
    const atMs = this.#nowMs()
    return this.#nodes.flatMap(({ name, deaths }) =>
      deaths.map((text) => ({ rule: 'died' as const, atMs, owner: name, text: `it ended by itself: ${text}` })),
    )
  }

  #actor(name: string, route: Route) {
    const random = new SeededRandom(this.#schedule.seed, name)
    return {
      name,
      record: this.#record,
      nowMs: this.#nowMs,
      random: random.next,
      chooseNode: this.#chooser(route, new SeededRandom(this.#schedule.seed, name, 'route')),
    }
  }

  #chooser({ nodes: planned, isSticky }: Route, random: SeededRandom) {
    const left = [...planned]
    return (previous: string | undefined): NodeAddress | undefined => {
      const next = left.shift()
      if (next !== undefined) return this.#stage.addressOf(next % this.#nodes.length)
      const up = this.#nodes.flatMap((node, index) => (node.isUp ? [{ node, index }] : []))
      const same = up.find(({ node }) => node.name === previous)
      if (isSticky && same !== undefined) return this.#stage.addressOf(same.index)
      const others = up.filter((each) => each !== same)
      const choices = others.length > 0 ? others : up
      return choices.length === 0 ? undefined : this.#stage.addressOf(random.pick(choices).index)
    }
  }
}
