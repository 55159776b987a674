import { randomBytes } from 'node:crypto'
import type { NodeAddress } from '../judging/record.js'
import { draw } from '../playing/draw.js'
import type { Breakable, Command } from '../playing/faults.js'
import { Link } from '../playing/link.js'
import { type Played, playAt, type Site } from '../playing/play.js'
import type { Schedule } from '../playing/schedule.js'
import { findPromise, type Installation, type Promised } from './promised.js'
import { scoped, scopeOf } from './scope.js'
import { themesOfVisit } from './themes.js'

/** How random schedules are played on an installation. */
export interface VisitOptions {
  readonly count: number
  readonly seed: number
  readonly lengthMs: number
  readonly commands: readonly Command[]
  /** No schedule begins after that. */
  readonly signal?: AbortSignal
}

const WORD_BYTES = 4
const PORTS: Readonly<Record<string, number>> = { 'ws:': 80, 'wss:': 443 }
/** From the first connection of a schedule to the last: it settles, and commands run. */
const MAX_SETTLE_MS = 60_000

/** An installation with a link on this machine in front of each of its addresses. */
export class Visit {
  readonly promised: Promised
  readonly #installation: Installation
  readonly #options: VisitOptions
  readonly #addresses: readonly NodeAddress[]
  readonly #breakable: Breakable

  private constructor(
    promised: Promised,
    installation: Installation,
    options: VisitOptions,
    addresses: readonly NodeAddress[],
    clientLinks: readonly Link[],
  ) {
    this.promised = promised
    this.#installation = installation
    this.#options = options
    this.#addresses = addresses
    this.#breakable = { parts: [], clientLinks, brokerLinks: [], peerLinks: [], commands: options.commands }
  }

  /** Finds out what the installation promises. @throws {CannotRun} */
  static async begin(installation: Installation, options: VisitOptions): Promise<Visit> {
    const { urls, token } = installation
    const links = await Promise.all(urls.map((url) => Link.start(targetOf(url))))
    const addresses = urls.map(
      (url, index): NodeAddress => ({
        name: `node-${index}`,
        url,
        ...(links[index] === undefined ? {} : { via: links[index].port }),
        ...(token === undefined ? {} : { token }),
      }),
    )
    try {
      const lengthMs = options.lengthMs + MAX_SETTLE_MS
      const promised = await findPromise(installation, addresses, wordOf(installation), lengthMs)
      return new Visit(promised, installation, options, addresses, links)
    } catch (error) {
      for (const link of links) link.stop()
      throw error
    }
  }

  /** Plays schedules one after another; `played` is called after each, and may play others. */
  async play(played: (played: Played, tookMs: number) => Promise<void>): Promise<void> {
    const { count, seed, lengthMs, commands, signal } = this.#options
    const { kind, messagesPerSecond } = this.promised
    const themes = themesOfVisit(kind !== 'none', commands.length)
    const nodeCount = this.#addresses.length
    const setting = {
      ...({ broker: 'given', partCount: 0, hasBrokerLinks: false, logged: kind } as const),
      ...{ nodeCount, themes, messagesPerSecond },
    }
    for (let index = 0; index < count && signal?.aborted !== true; index++) {
      const beganAtMs = performance.now()
      const result = await this.playOnce(draw(setting, seed + index, lengthMs))
      await played(result, performance.now() - beganAtMs)
    }
  }

  /** Plays a schedule with keys that were never used before. */
  async playOnce(schedule: Schedule): Promise<Played> {
    const word = wordOf(this.#installation)
    const site: Site = {
      addresses: this.#addresses,
      isUp: () => true,
      nodes: [],
      breakable: this.#breakable,
      rules: this.promised.rules,
      prefix: `${word}-`,
    }
    const { logged } = this.promised
    try {
      return { ...(await playAt(site, scoped(schedule, scopeOf(logged, word)))), schedule }
    } finally {
      for (const link of this.#breakable.clientLinks) link.heal()
    }
  }

  end(): void {
    for (const link of this.#breakable.clientLinks) link.stop()
  }
}

/** A word that nobody else uses. */
function wordOf({ prefix }: Installation): string {
  return `${prefix}.${randomBytes(WORD_BYTES).toString('hex')}`
}

function targetOf(url: string): { readonly host: string; readonly port: number } {
  const { hostname, port, protocol } = new URL(url)
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? (PORTS[protocol] ?? 0) : Number(port) }
}
