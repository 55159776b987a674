import type { Broker, InboundMessage } from '../ports/broker.js'
import { decodeGroupMessage, encodeGroupMessage, type GroupNodeMessage } from './node-message.js'

/** The key for messages to all nodes. For messages to one node, its name is appended. */
const GROUPS_KEY = '$webmq.groups'

/** Bytes of a part before its content, beside the name of the node: whether more follow, and the length of the name. */
const PART_HEAD_BYTES = 2
/** Bytes of a message beyond a payload: its header, or a part of a table. Anything longer is not from a node. */
const MAX_HEAD_BYTES = 131_072
/** Nodes whose message has begun and not ended. */
const MAX_PARTIAL_NODES = 1_024

/** What a {@link GroupChannel} works with. */
export interface GroupChannelContext {
  /** Name of this node, new with every start: 1 to 36 characters of `[A-Za-z0-9_-]`. */
  readonly node: string
  readonly broker: Pick<Broker, 'bind' | 'publish'>
  /** Largest message that other nodes accept. */
  readonly maxPayloadBytes: number
}

interface Partial {
  readonly chunks: Buffer[]
  byteCount: number
}

/**
 * Messages between nodes about queue groups, under reserved keys. One that is larger than a payload may be goes in parts:
 * a broker keeps the order of what one node publishes.
 */
export class GroupChannel {
  readonly #context: GroupChannelContext
  readonly #ownKey: string
  readonly #partials = new Map<string, Partial>()
  #malformedCount = 0

  constructor(context: GroupChannelContext) {
    this.#context = context
    this.#ownKey = `${GROUPS_KEY}.${context.node}`
  }

  /** Messages that could not be read. */
  get malformedCount(): number {
    return this.#malformedCount
  }

  /** @throws {WebMQError} `E_BROKER_UNAVAILABLE` */
  async open(): Promise<void> {
    const { broker } = this.#context
    await broker.bind(this.#ownKey)
    await broker.bind(GROUPS_KEY)
  }

  /**
   * Sends to one node, or to all. Resolves once the broker has accepted it. The payload is copied before it returns.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE`
   */
  async send(message: GroupNodeMessage, to?: string): Promise<void> {
    const { broker, maxPayloadBytes, node } = this.#context
    const content = encodeGroupMessage(message)
    const key = to === undefined ? GROUPS_KEY : `${GROUPS_KEY}.${to}`
    const roomBytes = maxPayloadBytes - PART_HEAD_BYTES - node.length
    const accepted: unknown[] = []
    for (let start = 0; start === 0 || start < content.length; start += roomBytes) {
      const chunk = content.subarray(start, start + roomBytes)
      const hasMore = start + roomBytes < content.length
      const head = Buffer.from([hasMore ? 1 : 0, node.length, ...Buffer.from(node, 'latin1')])
      accepted.push(broker.publish({ key, payload: Buffer.concat([head, chunk]), isBinary: true }))
    }
    await Promise.all(accepted)
  }

  /**
   * Reads a message on a reserved key.
   * @returns `undefined` if it is not one of these, `ignored` if it is malformed, its own, or not complete.
   */
  read({ key, payload }: Pick<InboundMessage, 'key' | 'payload'>): GroupNodeMessage | 'ignored' | undefined {
    if (key !== GROUPS_KEY && key !== this.#ownKey) return undefined
    const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
    const [hasMore = 0, length = 0] = bytes
    const node = bytes.toString('latin1', PART_HEAD_BYTES, PART_HEAD_BYTES + length)
    if (node === this.#context.node) return 'ignored'
    const content = this.#complete(node, bytes.subarray(PART_HEAD_BYTES + length), hasMore !== 0)
    if (content === undefined) return 'ignored'
    const message = decodeGroupMessage(content)
    if (message?.node === node) return message
    this.#malformedCount++
    return 'ignored'
  }

  /** The sender is gone. */
  forget(node: string): void {
    this.#partials.delete(node)
  }

  #complete(node: string, chunk: Buffer, hasMore: boolean): Buffer | undefined {
    const known = this.#partials.get(node)
    if (known === undefined && !hasMore) return chunk
    const partial = known ?? { chunks: [], byteCount: 0 }
    partial.byteCount += chunk.length
    const isTooMuch = partial.byteCount > this.#context.maxPayloadBytes + MAX_HEAD_BYTES
    if (isTooMuch || (known === undefined && this.#partials.size >= MAX_PARTIAL_NODES)) {
      this.#malformedCount++
      this.#partials.delete(node)
      return undefined
    }
    partial.chunks.push(Buffer.from(chunk))
    if (hasMore) {
      this.#partials.set(node, partial)
      return undefined
    }
    this.#partials.delete(node)
    return Buffer.concat(partial.chunks)
  }
}
