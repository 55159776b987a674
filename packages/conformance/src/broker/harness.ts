import type { GapReason } from 'webmq-client/protocol'
import type { Broker, BrokerSink, BrokerStatus, InboundMessage, OutboundMessage, Position } from 'webmq-server/ports'
import { eventually } from '../transport/eventually.js'
import { ListeningNode } from './listening-node.js'

/** One system of nodes that hear each other and nobody else: a namespace of its own, a log of its own. */
export interface BrokerSystem {
  /**
   * Makes a node, not started. Where there is history, the log keeps at least 1,000 small messages; message ids are remembered
   * for a minute.
   */
  createNode(): Broker | Promise<Broker>
  /**
   * What the nodes of this system have at the broker now, a line each: queues, subscriptions, connections. Asked while nodes run,
   * when there must be something, and after they have stopped, when there must be nothing. Absent for a broker that is in the process.
   */
  residue?(): Promise<readonly string[]>
  /** Called when the nodes have stopped. */
  end?(): void | Promise<void>
}

/** Makes a system; called once per test. */
export type CreateBrokerSystem = () => BrokerSystem | Promise<BrokerSystem>

/** A delivery, with its payload copied: a broker lends it only for the time of the call. */
export interface Delivery {
  readonly key: string
  readonly text: string
  readonly isBinary: boolean
  readonly position: Position | undefined
  readonly origin: number | undefined
}

/** A broker sink that remembers. */
export class DeliveryRecorder implements BrokerSink {
  readonly deliveries: Delivery[] = []
  readonly statuses: BrokerStatus[] = []
  readonly gaps: GapReason[] = []

  get texts(): string[] {
    return this.deliveries.map(({ text }) => text)
  }

  deliver(message: InboundMessage): boolean {
    this.deliveries.push(deliveryOf(message))
    return true
  }

  status(status: BrokerStatus): void {
    this.statuses.push(status)
  }

  gap(reason: GapReason): void {
    this.gaps.push(reason)
  }
}

/** A node that runs, and what it was told. */
export type RunningNode = ListeningNode<Broker, DeliveryRecorder>

/** The system of one test and its nodes. */
export class BrokerHarness {
  readonly system: BrokerSystem
  readonly #brokers: Broker[] = []

  constructor(system: BrokerSystem) {
    this.system = system
  }

  async startNode(): Promise<RunningNode> {
    const broker = await this.system.createNode()
    const node = new ListeningNode(broker, new DeliveryRecorder())
    this.#brokers.push(broker)
    await node.start()
    return node
  }

  async stopNodes(): Promise<void> {
    await Promise.all(this.#brokers.map((broker) => broker.stop()))
  }

  async end(): Promise<void> {
    await this.stopNodes()
    await this.system.end?.()
  }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** Stands for a position that is missing, and is none of any broker. */
export const NOWHERE: Position = { epoch: 'nowhere', offset: 0 }

/** What a message says, kept beyond the call that brought it. */
export function deliveryOf({ key, payload, isBinary, position, origin }: InboundMessage): Delivery {
  return { key, text: decoder.decode(payload), isBinary, position, origin }
}

/** A text message. */
export function text(key: string, text: string, more: Partial<OutboundMessage> = {}): OutboundMessage {
  return { key, payload: encoder.encode(text), isBinary: false, ...more }
}

/** Waits for the last of what was published, so that what should not come had its chance. */
export async function deliveredUpTo(sink: DeliveryRecorder, last: string): Promise<string[]> {
  return await eventually(() => {
    const { texts } = sink
    if (texts.at(-1) !== last)
      throw new Error(`${last} has not come; ${texts.length} have, the last was ${texts.at(-1)}`)
    return texts
  })
}
