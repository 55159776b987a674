import { Command, type Redis } from 'ioredis'
import { divertFrames } from './divert-frames.js'
import { endOfLine, numberAt } from './resp-frames.js'

/** What can be subscribed to: a channel, a glob, or a channel of a cluster's shard. */
export type SubscriptionKind = 'channel' | 'glob' | 'shard'

/** A message as it came, in bytes that are borrowed. One object for all. */
export interface PushedMessage {
  readonly bytes: Buffer
  /** The glob that it matched: from `globStart` to `globEnd`, which are the same when it was none. */
  readonly globStart: number
  readonly globEnd: number
  readonly channelStart: number
  readonly channelEnd: number
  readonly payloadStart: number
  readonly payloadEnd: number
}

const COMMANDS = {
  channel: ['subscribe', 'unsubscribe'],
  glob: ['psubscribe', 'punsubscribe'],
  shard: ['ssubscribe', 'sunsubscribe'],
} as const

const MESSAGE = 'message'
/** Commands of ioredis that are kept for the end of the turn, at most. */
const MAX_KEPT_CHUNKS = 4_096

/** The subscriptions of one connection, and the messages that come over it. */
export class RedisSubscriber {
  readonly #redis: Redis
  readonly #deliver: (message: PushedMessage) => void
  readonly #stream
  readonly #flush = () => this.#writeKept()
  readonly #message: { -readonly [K in keyof PushedMessage]: PushedMessage[K] } = {
    bytes: Buffer.alloc(0),
    globStart: 0,
    globEnd: 0,
    channelStart: 0,
    channelEnd: 0,
    payloadStart: 0,
    payloadEnd: 0,
  }
  #kept: (string | Buffer)[] = []

  /** @param heard Called when something has come. */
  constructor(redis: Redis, deliver: (message: PushedMessage) => void, heard: () => void) {
    this.#redis = redis
    this.#deliver = deliver
    // As for a pipeline of ioredis: commands of one turn of the event loop are written at once.
    this.#stream = {
      isPipeline: true as const,
      destination: { redis },
      write: (chunk: string | Buffer) => this.#keep(chunk),
    }
    divertFrames(redis, { heard, take: (bytes, start) => this.#take(bytes, start) })
  }

  /**
   * @param live Called when it is live and before any message that comes after that, which a promise cannot.
   * @throws the server's reply, or what ended the connection
   */
  async subscribe(kind: SubscriptionKind, name: string, live?: () => void): Promise<void> {
    await this.#send(COMMANDS[kind][0], name, live)
  }

  /** @param over As `live` of {@link subscribe}. */
  async unsubscribe(kind: SubscriptionKind, name: string, over?: () => void): Promise<void> {
    await this.#send(COMMANDS[kind][1], name, over)
  }

  #send(name: string, channel: string, done: (() => void) | undefined): Promise<unknown> {
    const command = new Command(name, [channel])
    const { resolve } = command
    command.resolve = (reply) => {
      done?.()
      resolve(reply)
    }
    this.#redis.sendCommand(command, this.#stream)
    return command.promise
  }

  #keep(chunk: string | Buffer): void {
    if (this.#kept.length === 0) setImmediate(this.#flush)
    this.#kept.push(chunk)
    if (this.#kept.length >= MAX_KEPT_CHUNKS) this.#writeKept()
  }

  #writeKept(): void {
    const kept = this.#kept
    this.#kept = []
    const { stream } = this.#redis
    if (kept.length === 0 || !stream.writable) return
    stream.cork()
    for (const chunk of kept) stream.write(chunk)
    stream.uncork()
  }

  /** Takes `message`, `pmessage` and `smessage`, as a push of RESP 3 or an array of RESP 2. */
  #take(bytes: Buffer, start: number): boolean {
    const nameAt = endOfLine(bytes, start)
    const nameStart = endOfLine(bytes, nameAt)
    const nameLength = numberAt(bytes, nameAt + 1)
    const prefixLength = nameLength - MESSAGE.length
    if (prefixLength !== 0 && prefixLength !== 1) return false
    if (!stands(MESSAGE, bytes, nameStart + prefixLength)) return false
    const message = this.#message
    message.bytes = bytes
    let at = nameStart + nameLength + 2
    message.globStart = message.globEnd = at
    if (prefixLength === 1 && bytes[nameStart] === 0x70 /* p */) {
      message.globStart = endOfLine(bytes, at)
      message.globEnd = message.globStart + numberAt(bytes, at + 1)
      at = message.globEnd + 2
    }
    message.channelStart = endOfLine(bytes, at)
    message.channelEnd = message.channelStart + numberAt(bytes, at + 1)
    at = message.channelEnd + 2
    message.payloadStart = endOfLine(bytes, at)
    message.payloadEnd = message.payloadStart + numberAt(bytes, at + 1)
    this.#deliver(message)
    return true
  }
}

function stands(text: string, bytes: Buffer, start: number): boolean {
  for (let at = 0; at < text.length; at++) if (bytes[start + at] !== text.charCodeAt(at)) return false
  return true
}
