import { setTimeout as sleep } from 'node:timers/promises'
import { type ActorOf, type Company, PROTOCOL } from '../actors/company.js'
import type { Listener } from '../actors/listener.js'
import type { Publisher } from '../actors/publisher.js'
import type { StreamViewer } from '../actors/stream-viewer.js'
import type { StreamWriter } from '../actors/stream-writer.js'
import { examine, type Violation } from '../judging/judge.js'
import { createRunRecord, type NodeAddress, type RunRecord } from '../judging/record.js'
import { ANSWER_WITHIN_MS, DELIVER_WITHIN_MS, type Rules } from '../judging/rules.js'
import { type Breakable, type Cast, type Mishap, stopNode, takeSteps } from './faults.js'
import type { Node } from './node.js'
import { ACTORS_PER_STREAM, type Route, type Schedule } from './schedule.js'
import { SeededRandom } from './seeded-random.js'
import { whatIsMissing } from './settled.js'
import { watchStandStill } from './stand-still.js'

/** What a schedule has come to. */
export interface Played {
  readonly schedule: Schedule
  /** Missing if it could not be played. */
  readonly record: RunRecord | undefined
  readonly violations: readonly (Violation | Mishap)[]
  /** Deliveries that were owed to listens. Default 0. */
  readonly owedCount?: number
}

/** Where a schedule is played. */
export interface Site {
  /** By the numbers of nodes in the schedule. */
  readonly addresses: readonly NodeAddress[]
  /** Whether a load balancer would send clients to a node. */
  readonly isUp: (node: number) => boolean
  /** Those that the play may stop and start, by the same numbers. */
  readonly nodes: readonly Node[]
  readonly breakable: Breakable
  readonly rules: Rules
  /** Begins the names of actors, and so the ids of messages. */
  readonly prefix: string
}

const POLL_INTERVAL_MS = 150

/**
 * Plays a schedule where nodes run: starts actors, takes the steps, waits until every listener gets what is published
 * after that, and stops all of it. Then it judges.
 */
export async function playAt(site: Site, schedule: Schedule, company = PROTOCOL): Promise<Played> {
  return await new Play(site, schedule, company).run()
}

class Play {
  readonly #site: Site
  readonly #schedule: Schedule
  readonly #company: Company
  readonly #record = createRunRecord()
  readonly #beganAtMs = performance.now()

  constructor(site: Site, schedule: Schedule, company: Company) {
    this.#site = site
    this.#schedule = schedule
    this.#company = company
  }

  async run(): Promise<Played> {
    const endWatch = watchStandStill(this.#record.faults, this.#nowMs)
    try {
      return await this.#run()
    } finally {
      endWatch()
    }
  }

  async #run(): Promise<Played> {
    const schedule = this.#schedule
    const company = this.#company
    const listeners = schedule.listeners.map((plan, index) =>
      company.listener({ ...this.#actor(`listener-${index}`, plan), ...plan }),
    )
    const publishers = schedule.publishers.map((plan, index) =>
      company.publisher({ ...this.#actor(`publisher-${index}`, plan), ...plan }),
    )
    const readers = schedule.readers.map((plan, index) =>
      company.reader({ ...this.#actor(`reader-${index}`, plan), ...plan }),
    )
    const members = Array.from({ length: schedule.memberCount ?? 0 }, (_, index) => {
      const { memberNode } = schedule
      const route =
        memberNode === undefined ? { nodes: [index], isSticky: false } : { nodes: [memberNode], isSticky: true }
      const actor = this.#actor(`member-${index}`, route)
      return company.member?.({ ...actor, group: 'members', pattern: '#' }) ?? []
    }).flat()
    const { writers, viewers } = this.#streams()
    const actors = [...listeners, ...publishers, ...readers, ...members, ...writers, ...viewers]
    const record = this.#record
    const { nodes, breakable, rules } = this.#site
    const cast: Cast = { breakable, nodes, publishers, listeners, writers, viewers, record, nowMs: this.#nowMs }
    const mishaps: Mishap[] = []
    // Nodes of a mesh answer clients while they still look for each other, and say so by a gap when they have found one.
    if (breakable.peerLinks.length > 0) {
      record.faults.push({ name: 'the nodes begin', fromMs: 0, untilMs: 0, touches: ['peer-links'] })
    }
    try {
      for (const actor of actors) actor.start()
      mishaps.push(...(await takeSteps(schedule, cast)))
      await sleep(Math.max(0, schedule.lengthMs - this.#nowMs()))
      mishaps.push(...(await this.#settle([...publishers, ...writers], listeners, viewers)))
      for (const viewer of viewers) viewer.show(true)
      record.endedAtMs = this.#nowMs()
    } finally {
      await Promise.all(actors.map((actor) => actor.stop()))
    }
    const stops = await Promise.all(nodes.map((node) => stopNode(node, cast)))
    mishaps.push(...company.errors.map((error) => ({ rule: 'play', atMs: this.#nowMs(), ...error }) as const))
    const { violations, owedCount } = examine(record, rules)
    return {
      schedule,
      record,
      owedCount,
      violations: [...violations, ...mishaps, ...stops.flat(), ...this.#deaths()],
    }
  }

  readonly #nowMs = (): number => performance.now() - this.#beganAtMs

  /** Waits until everybody is live and gets what is published from now on. */
  async #settle(
    publishers: readonly (ActorOf<Publisher> | ActorOf<StreamWriter>)[],
    listeners: readonly ActorOf<Listener>[],
    viewers: readonly ActorOf<StreamViewer>[],
  ): Promise<Mishap[]> {
    const fromMs = this.#nowMs()
    const { settleTimeoutMs } = this.#company
    const deadlineMs = fromMs + settleTimeoutMs
    const missing = () => [
      ...listeners.filter(({ isLive }) => !isLive).map(({ record }) => ({ owner: record.name, text: 'is not live' })),
      ...viewers.filter(({ isLive }) => !isLive).map(({ name }) => ({ owner: name, text: 'is not live' })),
      ...whatIsMissing(this.#record, fromMs),
    ]
    while (missing().length > 0 && this.#nowMs() < deadlineMs) await sleep(POLL_INTERVAL_MS)
    const late = missing()
    for (const publisher of publishers) publisher.pause()
    const unsettled = () => publishers.filter(({ isSettled }) => !isSettled)
    while (unsettled().length > 0 && this.#nowMs() < deadlineMs + ANSWER_WITHIN_MS) await sleep(POLL_INTERVAL_MS)
    late.push(...unsettled().map(({ record }) => ({ owner: record.name, text: 'has publishes that are not answered' })))
    // The last messages have their time, too.
    await sleep(DELIVER_WITHIN_MS)
    const atMs = this.#nowMs()
    return late.map(({ owner, text }) => ({
      rule: 'settle',
      atMs,
      owner,
      text: `${text}, ${Math.round(settleTimeoutMs / 1_000)} s after the last fault`,
    }))
  }

  #deaths(): Mishap[] {
    const atMs = this.#nowMs()
    return this.#site.nodes.flatMap(({ name, deaths }) =>
      deaths.map((text) => ({ rule: 'died' as const, atMs, owner: name, text: `it ended by itself: ${text}` })),
    )
  }

  #streams(): { readonly writers: ActorOf<StreamWriter>[]; readonly viewers: ActorOf<StreamViewer>[] } {
    const count = ACTORS_PER_STREAM * (this.#schedule.streamCount ?? 0)
    const plan = (name: string, index: number) => ({
      ...this.#actor(`${name}-${index}`, { nodes: [index], isSticky: false }),
      key: `stream.${index % (this.#schedule.streamCount ?? 1)}s`,
    })
    const each = Array.from({ length: count }, (_, index) => index)
    return {
      writers: each.map((index) => this.#company.writer(plan('writer', index))),
      viewers: each.map((index) => this.#company.viewer(plan('viewer', index))),
    }
  }

  #actor(name: string, route: Route) {
    const random = new SeededRandom(this.#schedule.seed, name)
    return {
      name: `${this.#site.prefix}${name}`,
      record: this.#record,
      nowMs: this.#nowMs,
      random: random.next,
      chooseNode: this.#chooser(route, new SeededRandom(this.#schedule.seed, name, 'route')),
    }
  }

  #chooser({ nodes: planned, isSticky }: Route, random: SeededRandom) {
    const left = [...planned]
    const { addresses, isUp } = this.#site
    return (previous: string | undefined): NodeAddress | undefined => {
      const next = left.shift()
      if (next !== undefined) return addresses[next % addresses.length]
      const up = addresses.filter((_, index) => isUp(index))
      const same = up.find(({ name }) => name === previous)
      if (isSticky && same !== undefined) return same
      const others = up.filter((each) => each !== same)
      const choices = others.length > 0 ? others : up
      return choices.length === 0 ? undefined : random.pick(choices)
    }
  }
}
