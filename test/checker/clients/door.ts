import type { ActorOptions } from '../../../packages/check/src/actors/actor.js'
import type { ConnectionRecord } from '../../../packages/check/src/judging/record.js'
import { Link, type Target } from '../../../packages/check/src/playing/link.js'

const HOST = '127.0.0.1'
/** Where nothing answers: what a load balancer without a node that is up does to a connection. */
const NOWHERE: Target = 1
/** A replay is on its way by then, or over. */
const MAX_REPLAY_MS = 60

export interface DoorHandlers {
  /** A connection has begun: to a node, through the door. */
  readonly opened?: () => void
  readonly ended?: () => void
}

/**
 * The address that one client knows: each of its connections goes to the node that the schedule says, as through a load
 * balancer. What an actor does to its connection is done here, so that a client needs no means for it.
 */
export class Door {
  readonly url: string
  readonly #link: Link
  readonly #shared: Shared

  private constructor(link: Link, shared: Shared) {
    this.#link = link
    this.#shared = shared
    this.url = `ws://${HOST}:${link.port}/ws`
  }

  static async open(options: ActorOptions, handlers: DoorHandlers = {}): Promise<Door> {
    const shared: Shared = { current: undefined, number: -1, previous: undefined, timers: new Map(), movesLeft: 0 }
    const choose = (): Target => {
      const node = options.chooseNode(shared.previous)
      if (node === undefined) return NOWHERE
      shared.previous = node.name
      const { connections } = options.record
      const { name: owner, nowMs, random } = options
      const record: ConnectionRecord = {
        number: connections.length,
        owner,
        node: node.name,
        beganAtMs: nowMs(),
        requests: [],
        stalls: [],
        breaches: [],
      }
      connections.push(record)
      shared.current = record
      shared.number = record.number
      if (shared.movesLeft > 0) {
        shared.movesLeft--
        const move = () => {
          shared.timers.delete('move')
          door.cut('move')
        }
        shared.timers.set('move', setTimeout(move, random() * MAX_REPLAY_MS))
      }
      handlers.opened?.()
      const ended = () => {
        record.closed = { code: 1006, by: 'client', atMs: nowMs() }
        for (const stall of record.stalls) stall.untilMs ??= nowMs()
        if (shared.current !== record) return
        shared.current = undefined
        handlers.ended?.()
      }
      return { port: Number(new URL(node.url).port), ended }
    }
    const door: Door = new Door(await Link.start(choose), shared)
    return door
  }

  /** Whether there is a connection that is not to be cut soon. */
  get isOpen(): boolean {
    const { current, movesLeft, timers } = this.#shared
    return current !== undefined && movesLeft === 0 && !timers.has('move')
  }

  /** {@link ConnectionRecord.number} of the last connection; -1 before the first. */
  get number(): number {
    return this.#shared.number
  }

  /** Name of the node of the present connection. */
  get node(): string | undefined {
    return this.#shared.current?.node
  }

  /** Resets the connection. The client makes another one. */
  cut(reason = 'cut'): void {
    const { current, timers } = this.#shared
    clearTimeout(timers.get('stall'))
    if (current !== undefined) current.reason ??= reason
    this.#link.break({ fault: 'cut' })
    this.#link.heal()
  }

  /** The next `count` times, the connection is cut soon after it has begun. */
  cutDuringReplay(count: number): void {
    this.#shared.movesLeft = count
    this.cut('move')
  }

  /** Nothing that a node sends comes through for some time. */
  stall(forMs: number, nowMs: () => number): void {
    const { current, timers } = this.#shared
    if (current === undefined || current.stalls.some(({ untilMs }) => untilMs === undefined)) return
    const stall: { readonly fromMs: number; untilMs?: number } = { fromMs: nowMs() }
    current.stalls.push(stall)
    this.#link.break({ fault: 'stall', streams: ['downstream'] })
    const heal = () => {
      stall.untilMs ??= nowMs()
      this.#link.heal()
    }
    timers.set('stall', setTimeout(heal, forMs))
  }

  close(): void {
    for (const timer of this.#shared.timers.values()) clearTimeout(timer)
    this.#link.stop()
  }
}

interface Shared {
  current: ConnectionRecord | undefined
  number: number
  previous: string | undefined
  movesLeft: number
  readonly timers: Map<'stall' | 'move', NodeJS.Timeout>
}
