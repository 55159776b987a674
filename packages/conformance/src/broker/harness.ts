import type { GapReason } from 'webmq-client/protocol'
import type {
  Broker,
  BrokerSink,
  BrokerStatus,
  HistoryOptions,
  InboundMessage,
  OutboundMessage,
  Position,
  RefusedMessage,
} from 'webmq-server/ports'
import { eventually } from '../transport/eventually.js'
import { ListeningNode } from './listening-node.js'

/** One isolated system of nodes, with its own namespace and log. */
export interface BrokerSystem {
  /**
   * Makes a node, not started. With history, the log keeps at least 1,000 small messages. Message ids are remembered
   * for a minute.
   * @param history In place of the system's own, for a broker that can keep a log.
   */
  createNode(history?: HistoryOptions): Broker | Promise<Broker>
  /**
   * The queues, subscriptions and connections of this system at the broker, a line each. There must be some while nodes
   * run, and none after they have stopped. Absent for an in-process broker.
   */
  residue?(): Promise<readonly string[]>
  /** Called when the nodes have stopped. */
  end?(): void | Promise<void>
}

/** Makes a system; called once per test. */
export type CreateBrokerSystem = () => BrokerSystem | Promise<BrokerSystem>

/** A delivery with a copied payload, which is valid only during the broker's call. */
export interface Delivery {
  readonly key: string
  readonly text: string
  readonly isBinary: boolean
  readonly position: Position | undefined
  readonly publisher: number | undefined
}

/** A broker sink that records its calls. */
export class DeliveryRecorder implements BrokerSink {
  readonly deliveries: Delivery[] = []
  readonly statuses: BrokerStatus[] = []
  readonly gaps: GapReason[] = []
  readonly refusals: RefusedMessage[] = []

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

  refused(message: RefusedMessage): void {
    this.refusals.push(message)
  }
}

/** A running node, and the record of its sink. */
export type RunningNode = ListeningNode<Broker, DeliveryRecorder>

/** The system of one test and its nodes. */
export class BrokerHarness {
  readonly system: BrokerSystem
  readonly #brokers: Broker[] = []

  constructor(system: BrokerSystem) {
    this.system = system
  }

  /** @param history As for {@link BrokerSystem.createNode}. */
  async startNode(history?: HistoryOptions): Promise<RunningNode> {
    const broker = await this.system.createNode(history)
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

/** Stands for a missing position. No broker has this one. */
export const NOWHERE: Position = { epoch: 'nowhere', offset: 0, fingerprint: 0 }

/** A message, kept beyond the call that delivered it. */
export function deliveryOf({ key, payload, isBinary, position, publisher }: InboundMessage): Delivery {
  return { key, text: decoder.decode(payload), isBinary, position, publisher }
}

/** A text message. */
export function text(key: string, text: string, more: Partial<OutboundMessage> = {}): OutboundMessage {
  return { key, payload: encoder.encode(text), isBinary: false, ...more }
}

/** Waits for the last published message, so that unwanted ones had time to come. */
export async function deliveredUpTo(sink: DeliveryRecorder, last: string): Promise<string[]> {
  return await eventually(() => {
    const { texts } = sink
    if (texts.at(-1) !== last)
      throw new Error(`${last} has not come; ${texts.length} have, the last was ${texts.at(-1)}`)
    return texts
  })
}
