import type { SeededRandom } from '../../packages/check/src/playing/seeded-random.js'
import { brokerOptions } from '../../packages/conformance/src/index.js'
import { RemoteBroker } from '../../packages/server/src/adapters/brokers/remote/broker.js'
import {
  createNatsBroker,
  createRabbitmqBroker,
  createRedisBroker,
} from '../../packages/server/src/adapters/brokers/remote-brokers.js'
import type { ServerOptions } from '../../packages/server/src/doors/options/server-options.js'
import type { Broker } from '../../packages/server/src/kernel/ports/index.js'
import { memoryOptions } from '../../packages/server/test/memory-options.js'
import { nuid } from '../../packages/server/test/nats-ids.js'
import { ModelBroker } from './model-broker.js'
import type { Network } from './network.js'
import type { WireBroker } from './wire/broker.js'
import { NatsModel } from './wire/nats/model.js'
import { NO_BYTES } from './wire/nats/protocol.js'
import { RabbitmqModel } from './wire/rabbitmq/broker.js'
import { timingOf } from './wire/rabbitmq/busy.js'
import { epochOfLog } from './wire/rabbitmq/log-epoch.js'
import { ModelRedis } from './wire/redis/broker.js'

/** The trouble in which queues drop messages. */
export const FULL = 'fill its queues'

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
  /** Takes nothing more, until all nodes have everything that it has sent. Returns when that is. */
  drain(): number
  /** Ends, and loses the last `lostCount` messages of its log. */
  end(lostCount: number): void
  start(): void
  /** Does one of its faults, but no end. @param isLossy One of {@link LOSSES}; else none of them. */
  suffer(random: SeededRandom, isLossy: boolean): BrokerFault | undefined
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
    troubles: {
      /** It takes no writes: its memory is full. */
      'fill the broker': ({ settings }: ModelRedis, isOn: boolean) => {
        settings.set('maxmemory', isOn ? '1' : '0')
      },
    },
  },
  nats: {
    create: natsModel,
    url: (host: string, port: number) => `nats://${host}:${port}`,
    createBroker: createNatsBroker,
    epochOf: (model: NatsModel) =>
      /log [\w-]+(?:, generation [\w.-]+)?/.exec(model.descriptionOf('webmq-log') ?? '')?.[0] ?? '',
    troubles: {
      'take JetStream away': (model: NatsModel, isOn: boolean) => {
        model.jetStream = isOn ? 'gone' : 'here'
      },
      'let JetStream say nothing': (model: NatsModel, isOn: boolean) => {
        model.jetStream = isOn ? 'silent' : 'here'
      },
      'put older data back': (model: NatsModel, isOn: boolean) => {
        if (isOn) model.restoreData()
        else model.start()
      },
      'delete the stream': (model: NatsModel, isOn: boolean) => {
        if (isOn) model.publish(API_REQUEST)
      },
    },
  },
  rabbitmq: {
    create: rabbitmqModel,
    url: (host: string, port: number) => `amqp://${host}:${port}`,
    createBroker: createRabbitmqBroker,
    epochOf: (model: RabbitmqModel) => epochOfLog(model, 'webmq'),
    // A node gives up an attempt to connect after 30 s only, and AMQP's own heartbeat needs 10.
    halfOpenMs: 3_000,
    troubles: {
      'let it run short of memory': (model: RabbitmqModel, isOn: boolean) =>
        model.setAlarm(isOn ? 'low on memory' : undefined),
      'close all connections': (model: RabbitmqModel, isOn: boolean) => {
        if (isOn) model.closeConnections('maintenance')
      },
      'keep its queues busy': (model: RabbitmqModel, isOn: boolean) => model.holdQueues(isOn),
      [FULL]: ({ policy }: RabbitmqModel, isOn: boolean) => {
        policy.maxCount = isOn ? 3 : Number.POSITIVE_INFINITY
        policy.maxUnackedCount = isOn ? 2 : Number.POSITIVE_INFINITY
      },
      'put older data back': (model: RabbitmqModel, isOn: boolean) => {
        if (isOn) model.restoreData()
        else model.start()
      },
    },
  },
}

function rabbitmqModel(random: () => number, isNew: boolean): RabbitmqModel {
  const model = new RabbitmqModel({ timing: timingOf(random), version: isNew ? '4.0.5' : '3.10.8' })
  setTimeout(() => model.keepData(), 300 + random() * 1_500)
  return model
}

/** Longer than anything is on its way. */
const DRAIN_MS = 200

/** The troubles that lose something of the log. */
export const LOSSES: ReadonlySet<string> = new Set(['put older data back', 'delete the stream'])

/** The troubles in which single messages are refused, or dropped in silence, while the connection lives. */
export const REFUSALS: ReadonlySet<string> = new Set([
  'fill the broker',
  'take JetStream away',
  'let JetStream say nothing',
])

const API_REQUEST = { subject: '$JS.API.STREAM.DELETE.webmq-log', reply: '', headers: NO_BYTES, payload: NO_BYTES }

/** In most schedules it is slow, and then it does its work in other orders; in some it says that it is of a cluster. */
function natsModel(random: () => number): NatsModel {
  // The library counts its names on from run to run.
  nuid.reset()
  const hasCluster = random() < 0.3
  const slownessMs = [0, 1, 5, 20][Math.floor(random() * 4)] ?? 0
  const isPaused = () => random() < 0.02
  const delayMs = () => (slownessMs === 0 ? 0 : random() * slownessMs * (isPaused() ? 20 : 1))
  const windowBytes = random() < 0.5 ? 2_000 : 2_000_000
  const model = new NatsModel({ hasCluster, delayMs, windowBytes })
  setTimeout(() => model.keepData(), 300 + random() * 1_500)
  return model
}

interface WireRow<Model extends WireBroker> {
  /** @param isNew Whether it is of a newer version than Debian 12's. */
  readonly create: (random: () => number, isNew: boolean) => Model
  readonly url: (host: string, port: number) => string
  readonly createBroker: typeof createRedisBroker
  readonly epochOf: (model: Model) => string
  /** After so long the network tells that a half-open connection is dead. Default: never. */
  readonly halfOpenMs?: number
  /** What may be wrong with it for a while, by name. */
  readonly troubles: Readonly<Record<string, (model: Model, isOn: boolean) => void>>
}

/** The brokers of the schedules: `model` is a driver of its own, the others are real drivers and a model of a wire. */
export const SEEDED_BROKERS = {
  model: () => new DriverModel(),
  redis: (network: Network, isNew: boolean) => new WireModel(network, WIRE.redis, isNew),
  nats: (network: Network, isNew: boolean) => new WireModel(network, WIRE.nats, isNew),
  rabbitmq: (network: Network, isNew: boolean) => new WireModel(network, WIRE.rabbitmq, isNew),
} satisfies Record<string, (network: Network, isNew: boolean) => SeededBroker>

class DriverModel implements SeededBroker {
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

  /** It knows what some node has. */
  drain(): number {
    return 0
  }

  end(lostCount: number): void {
    this.#model.end(lostCount)
  }

  start(): void {
    this.#model.isUp = true
  }

  suffer(random: SeededRandom, isLossy: boolean): BrokerFault | undefined {
    const links = [...this.#model.links]
    if (isLossy || links.length === 0) return undefined
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

  constructor(network: Network, row: WireRow<Model>, isNew: boolean) {
    this.#network = network
    this.#row = row
    this.#model = row.create(() => network.chance(), isNew)
    this.#port = { broker: this.#model, isUp: true }
    network.brokers.set(this.#model.port, this.#port)
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

  drain(): number {
    for (const socket of this.#network.tcp) socket.suffer('hold', DRAIN_MS)
    return DRAIN_MS
  }

  end(lostCount: number): void {
    this.#port.isUp = false
    this.#model.kill(lostCount)
  }

  start(): void {
    if (this.#port.isUp) return
    this.#port.isUp = true
    this.#model.start()
  }

  suffer(random: SeededRandom, isLossy: boolean): BrokerFault | undefined {
    const sockets = [...this.#network.tcp]
    if (sockets.length === 0) return undefined
    const one = random.pick(sockets)
    const ofNode = sockets.filter(({ remoteAddress }) => remoteAddress === one.remoteAddress)
    const chosen = random.chance(0.5) ? [one] : ofNode
    const forMs = random.integer(50, 1_500)
    const links = (name: string, lastsMs = 10): BrokerFault => ({ name, forMs: lastsMs, touches: ['broker-links'] })
    const onLinks: (() => BrokerFault)[] = [
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
    const troubles = Object.entries(this.#row.troubles).flatMap(([name, set]) => {
      if (LOSSES.has(name) !== isLossy) return []
      return () => {
        set(this.#model, true)
        setTimeout(() => set(this.#model, false), forMs)
        return { name, forMs, touches: ['broker'] } as const
      }
    })
    const faults = isLossy ? troubles : [...onLinks, ...troubles]
    if (faults.length === 0) return undefined
    return random.pick(faults)()
  }

  heal(): void {
    this.start()
    for (const set of Object.values(this.#row.troubles)) set(this.#model, false)
  }
}
