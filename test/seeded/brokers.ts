import { brokerOptions } from '../../packages/conformance/src/index.js'
import { RemoteBroker } from '../../packages/server/src/brokers/remote/broker.js'
import { createRabbitmqBroker, createRedisBroker } from '../../packages/server/src/brokers/remote-brokers.js'
import type { ServerOptions } from '../../packages/server/src/options/server-options.js'
import type { Broker } from '../../packages/server/src/ports/index.js'
import { memoryOptions } from '../../packages/server/test/memory-options.js'
import type { SeededRandom } from '../checker/seeded-random.js'
import { ModelBroker } from './model-broker.js'
import type { Network } from './network.js'
import { RabbitmqModel } from './wire/rabbitmq/broker.js'
import { timingOf } from './wire/rabbitmq/busy.js'
import { epochOfLog } from './wire/rabbitmq/log-epoch.js'
import { ModelRedis } from './wire/redis/broker.js'
import type { WireBroker } from './wire/wire-broker.js'

/** A fault of the broker or its links, which has been done: its name, and how long it lasts. */
export interface BrokerFault {
  readonly name: string
  readonly forMs: number
  readonly touches: readonly ('broker' | 'broker-links' | 'broker-data')[]
}

/** The broker of one schedule. */
export interface SeededBroker {
  /** For a process at this address. */
  createBroker(host: string, options: ServerOptions): Promise<Broker>
  /** Names the epoch of its log. */
  readonly epoch: string
  readonly isUp: boolean
  /** A node that has not read the end of the log may say that it is whole. */
  readonly mayVouch: boolean
  /** How long it takes at most until everything is well again. */
  readonly quietMs: number
  /** Ends, and loses the last so many messages of its log. @returns what that has touched, as far as it is known yet. */
  end(lostCount: number): BrokerFault['touches']
  start(): void
  /** Does one of its faults, but no end. */
  suffer(random: SeededRandom): BrokerFault | undefined
  /** Nothing is wrong any more. */
  heal(): void
}

export type SeededBrokerName = keyof typeof SEEDED_BROKERS

const WIRE = {
  redis: {
    create: (random: () => number) => new ModelRedis({ random }),
    url: (host: string, port: number) => `redis://${host}:${port}`,
    createBroker: createRedisBroker,
    epochOf: ({ keys }: ModelRedis) => keys.hash('webmq/log/state')?.get('epoch') ?? '',
    /** It takes no writes: its memory is full. */
    fill: ({ settings }: ModelRedis, isFull: boolean) => settings.set('maxmemory', isFull ? '1' : '0'),
  },
  rabbitmq: {
    create: (random: () => number) => new RabbitmqModel({ timing: timingOf(random) }),
    url: (host: string, port: number) => `amqp://${host}:${port}`,
    createBroker: createRabbitmqBroker,
    // A node gives up an attempt to connect after 30 s only. AMQP's own heartbeat needs 10.
    halfOpenMs: 3_000,
    quietMs: 10_000,
    isEndSeen: false,
    epochOf: (model: RabbitmqModel) => epochOfLog(model, 'webmq'),
    /** It runs short of memory. */
    fill: (model: RabbitmqModel, isFull: boolean) => model.setAlarm(isFull ? 'low on memory' : undefined),
    faults: (model: RabbitmqModel, forMs: number): readonly (() => BrokerFault)[] => [
      () => {
        model.closeConnections('maintenance')
        return { name: 'close all connections', forMs: 10, touches: ['broker-links'] }
      },
      () => {
        model.holdQueues(forMs)
        return { name: 'busy queues', forMs, touches: ['broker'] }
      },
      () => {
        if (model.hasKeptData) {
          model.restoreData()
          setTimeout(() => model.start(), forMs)
          return { name: 'put data back', forMs, touches: ['broker', 'broker-data'] }
        }
        model.keepData()
        return { name: 'keep data', forMs: 0, touches: [] }
      },
      () => {
        Object.assign(model.policy, { maxCount: 3, maxUnackedCount: 2 })
        setTimeout(() => {
          Object.assign(model.policy, { maxCount: Number.POSITIVE_INFINITY, maxUnackedCount: Number.POSITIVE_INFINITY })
        }, forMs)
        return { name: 'full queues', forMs, touches: ['broker-links'] }
      },
    ],
  },
}

interface WireRow<Model extends WireBroker> {
  readonly create: (random: () => number) => Model
  readonly url: (host: string, port: number) => string
  readonly createBroker: typeof createRedisBroker
  readonly epochOf: (model: Model) => string
  /** Default: {@link QUIET_MS}. */
  readonly quietMs?: number
  /** `false`: nodes find no loss of what none of them had read; another epoch is what is lost. */
  readonly isEndSeen?: boolean
  /** After so long the network tells that a connection is dead. Default: never. */
  readonly halfOpenMs?: number
  readonly fill?: (model: Model, isFull: boolean) => unknown
  /** Of this broker alone. */
  readonly faults?: (model: Model, forMs: number) => readonly (() => BrokerFault)[]
}

/** The brokers of the schedules: `model` is a driver of its own, the others are real drivers and a model of a wire. */
export const SEEDED_BROKERS = {
  model: () => new DriverModel(),
  redis: (network: Network) => new WireModel(network, WIRE.redis),
  rabbitmq: (network: Network) => new WireModel(network, WIRE.rabbitmq),
} satisfies Record<string, (network: Network) => SeededBroker>

/** A link of which nobody tells that it is dead is lost after two heartbeats, and made again within another second. */
const QUIET_MS = 6_000

class DriverModel implements SeededBroker {
  readonly quietMs = QUIET_MS
  readonly mayVouch = false
  readonly #model = new ModelBroker()

  async createBroker(_: string, options: ServerOptions): Promise<Broker> {
    return new RemoteBroker(this.#model.createDriver(), brokerOptions(memoryOptions(options)))
  }

  get epoch(): string {
    return this.#model.epoch
  }

  get isUp(): boolean {
    return this.#model.isUp
  }

  end(lostCount: number): BrokerFault['touches'] {
    this.#model.end(lostCount)
    return lostCount > 0 ? ['broker', 'broker-data'] : ['broker']
  }

  start(): void {
    this.#model.isUp = true
  }

  suffer(random: SeededRandom): BrokerFault | undefined {
    const links = [...this.#model.links]
    if (links.length === 0) return undefined
    random.pick(links).lose('cut')
    return { name: 'lose a link', forMs: 10, touches: ['broker-links'] }
  }

  heal(): void {
    this.start()
  }
}

class WireModel<Model extends WireBroker> implements SeededBroker {
  readonly #network: Network
  readonly #row: WireRow<Model>
  readonly #model: Model
  readonly #port: { readonly broker: Model; isUp: boolean }

  constructor(network: Network, row: WireRow<Model>) {
    this.#network = network
    this.#row = row
    this.#model = row.create(() => network.chance())
    this.#port = { broker: this.#model, isUp: true }
    network.brokers.set(this.#model.port, this.#port)
  }

  get mayVouch(): boolean {
    return this.#row.isEndSeen === false
  }

  get quietMs(): number {
    return this.#row.quietMs ?? QUIET_MS
  }

  async createBroker(host: string, options: ServerOptions): Promise<Broker> {
    const { url, createBroker } = this.#row
    const broker = url(host, this.#model.port)
    return await createBroker({ ...brokerOptions(memoryOptions(options)), broker, brokerNamespace: 'webmq' })
  }

  get epoch(): string {
    return this.#row.epochOf(this.#model)
  }

  get isUp(): boolean {
    return this.#port.isUp
  }

  end(lostCount: number): BrokerFault['touches'] {
    this.#port.isUp = false
    this.#model.kill(lostCount)
    return lostCount > 0 && this.#row.isEndSeen !== false ? ['broker', 'broker-data'] : ['broker']
  }

  start(): void {
    if (this.#port.isUp) return
    this.#port.isUp = true
    this.#model.start()
  }

  suffer(random: SeededRandom): BrokerFault | undefined {
    const sockets = [...this.#network.tcp]
    if (sockets.length === 0) return undefined
    const { fill } = this.#row
    const one = random.pick(sockets)
    const ofNode = sockets.filter(({ remoteAddress }) => remoteAddress === one.remoteAddress)
    const chosen = random.chance(0.5) ? [one] : ofNode
    const forMs = random.integer(50, 1_500)
    const links = (name: string, lastsMs = 10): BrokerFault => ({ name, forMs: lastsMs, touches: ['broker-links'] })
    const faults: (() => BrokerFault)[] = [
      ...(['reset', 'end', 'half-open'] as const).map((fault) => () => {
        const { halfOpenMs } = this.#row
        const isTold = fault === 'half-open' && halfOpenMs !== undefined
        for (const socket of chosen) {
          if (isTold) {
            socket.suffer('stall', halfOpenMs)
            setTimeout(() => socket.suffer('reset'), halfOpenMs)
          } else socket.suffer(fault)
        }
        return links(`${fault} ${chosen.length} links of ${one.remoteAddress}`, isTold ? halfOpenMs : undefined)
      }),
      () => {
        for (const socket of chosen) socket.suffer('stall', forMs)
        return links(`stall ${chosen.length} links of ${one.remoteAddress}`, forMs)
      },
      () => {
        for (const socket of sockets) socket.suffer('stall', forMs)
        return { name: 'freeze the broker', forMs, touches: ['broker'] }
      },
    ]
    if (fill !== undefined)
      faults.push(() => {
        fill(this.#model, true)
        setTimeout(() => fill(this.#model, false), forMs)
        return { name: 'fill the broker', forMs, touches: ['broker'] }
      })
    faults.push(...(this.#row.faults?.(this.#model, forMs) ?? []))
    return random.pick(faults)()
  }

  heal(): void {
    this.start()
    this.#row.fill?.(this.#model, false)
  }
}
