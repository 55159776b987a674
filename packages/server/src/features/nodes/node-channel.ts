import type { Broker, InboundMessage } from '../../kernel/ports/broker.js'
import {
  decodeContent,
  decodePart,
  encodeContent,
  encodePart,
  type MessagePart,
  NODE_FORMAT,
  type NodeMessage,
  partHeadBytes,
} from './node-message.js'
import type { NodesContext } from './options.js'

/** Begins the keys for messages to all nodes; the topic follows. */
const TOPIC_KEY = '$webmq.nodes.'
/** Begins the keys for messages to one node; its name follows. */
const NODE_KEY = '$webmq.node.'
/** Bytes of a message beyond a payload: its line of text. Anything longer is not from a node. */
const MAX_LINE_BYTES = 262_144
/** Content of a part at least. Nodes whose `maxPayloadBytes` is less refuse and count it. */
const MIN_PART_BYTES = 256
/** Nodes whose message has begun and not ended, and memory of all these. What has not gone on for longest is given up first. */
const MAX_PARTIAL_NODES = 1_024
const MAX_PARTIAL_BYTES = 64 * 1_048_576
/** Memory of a part beside its content. */
const PART_BYTES = 256
/** Delay after a failed bind. */
const RETRY_MS = 1_000

export interface NodeChannelContext extends Pick<NodesContext, 'node' | 'maxPayloadBytes'> {
  readonly broker: Pick<Broker, 'bind' | 'publish'>
  /** Called with every message of another node. MUST NOT call the broker from within this call. */
  readonly onMessage: (message: NodeMessage) => void
  /** A message of this node has come back. */
  readonly onEcho: () => void
  readonly onFormat: (node: string, format: number) => void
  readonly onError: (error: unknown, text: string) => void
}

interface Partial {
  readonly chunks: Buffer[]
  byteCount: number
}

/**
 * Messages between nodes, under reserved keys. One that is larger than a payload may be goes in parts: a broker keeps the
 * order of what one node publishes. Malformed ones are counted and ignored.
 */
export class NodeChannel {
  readonly #context: NodeChannelContext
  readonly #partials = new Map<string, Partial>()
  #partialBytes = 0
  #isClosed = false
  pendingCount = 0
  /** Messages that could not be read: malformed, or of another format. */
  malformedCount = 0

  constructor(context: NodeChannelContext) {
    this.#context = context
  }

  /** Messages to this node alone arrive once it resolves. Tries again until it succeeds or the channel is closed. */
  async open(): Promise<void> {
    await this.#bind(NODE_KEY + this.#context.node)
  }

  /** The same for messages of a topic to all nodes. */
  async bind(topic: string): Promise<void> {
    await this.#bind(TOPIC_KEY + topic)
  }

  /**
   * Sends to one node, or to all. Resolves once the broker has accepted it. The payload is copied before it returns.
   * @param fields JSON of an object.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE`
   */
  async send(topic: string, kind: string, fields: string, to?: string, payload?: Uint8Array): Promise<void> {
    if (this.#isClosed) return
    const { broker, maxPayloadBytes, node } = this.#context
    const content = encodeContent(topic, kind, fields, payload)
    const key = to === undefined ? TOPIC_KEY + topic : NODE_KEY + to
    const roomBytes = Math.max(MIN_PART_BYTES, maxPayloadBytes - partHeadBytes(node))
    const accepted: unknown[] = []
    try {
      for (let start = 0; start < content.length; start += roomBytes) {
        const end = start + roomBytes
        const part = encodePart(node, content.subarray(start, end), end < content.length, start / roomBytes)
        accepted.push(broker.publish({ key, payload: part, isBinary: true }))
      }
    } catch (error) {
      // The parts before it are pending and may fail too: all are awaited.
      accepted.push(Promise.reject(error))
    }
    this.pendingCount += accepted.length
    try {
      await Promise.all(accepted)
    } finally {
      this.pendingCount -= accepted.length
    }
  }

  /** The same later, for messages whose loss other nodes notice by themselves: the sink of a broker must not call it. */
  tell(topic: string, kind: string, fields: object, to?: string): void {
    setImmediate(() => {
      this.send(topic, kind, JSON.stringify(fields), to).catch((error: unknown) =>
        this.#context.onError(error, `the message ${kind} about ${topic} could not be published`),
      )
    })
  }

  /** Takes a message on a reserved key; returns whether it is one of these. */
  receive({ key, payload }: Pick<InboundMessage, 'key' | 'payload'>): boolean {
    const { node, onMessage, onEcho } = this.#context
    if (!key.startsWith(TOPIC_KEY) && key !== NODE_KEY + node) return false
    if (this.#isClosed) return true
    const part = decodePart(payload)
    if (part?.node === node) {
      onEcho()
      return true
    }
    const content = part === undefined ? undefined : this.#complete(part)
    if (content === 'incomplete') return true
    const message = part === undefined || content === undefined ? undefined : decodeContent(part.node, content)
    if (message === undefined) this.malformedCount++
    else onMessage(message)
    return true
  }

  forget(node: string): void {
    this.#partialBytes -= heldBytes(this.#partials.get(node))
    this.#partials.delete(node)
  }

  close(): void {
    this.#isClosed = true
    for (const node of [...this.#partials.keys()]) this.forget(node)
  }

  async #bind(key: string): Promise<void> {
    while (!this.#isClosed) {
      try {
        await this.#context.broker.bind(key)
        return
      } catch (error) {
        this.#context.onError(error, `${key} could not be bound; it is tried again`)
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref())
      }
    }
  }

  #complete({ format, node, index, hasMore, content }: MessagePart): Buffer | 'incomplete' | undefined {
    if (format !== NODE_FORMAT) {
      this.#context.onFormat(node, format)
      return undefined
    }
    const begun = this.#partials.get(node)
    const known = begun?.chunks.length === index ? begun : undefined
    // A part is missing: what has begun is lost, and no two messages are joined.
    if (begun !== undefined && known === undefined) {
      this.forget(node)
      this.malformedCount++
    }
    if (known === undefined && index > 0) return undefined
    if (known === undefined && !hasMore) return content
    const partial = known ?? { chunks: [], byteCount: 0 }
    // Until it is put back, it is not counted.
    this.forget(node)
    partial.byteCount += content.length
    if (partial.byteCount > this.#context.maxPayloadBytes + MAX_LINE_BYTES) return undefined
    partial.chunks.push(Buffer.from(content))
    if (!hasMore) return Buffer.concat(partial.chunks)
    this.#partials.set(node, partial)
    this.#partialBytes += heldBytes(partial)
    for (const oldest of this.#partials.keys()) {
      if (this.#partials.size <= MAX_PARTIAL_NODES && this.#partialBytes <= MAX_PARTIAL_BYTES) break
      this.forget(oldest)
    }
    return 'incomplete'
  }
}

function heldBytes(partial: Partial | undefined): number {
  return partial === undefined ? 0 : partial.byteCount + partial.chunks.length * PART_BYTES
}
