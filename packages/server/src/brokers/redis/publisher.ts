import type { Redis } from 'ioredis'
import type { Accepted } from '../../ports/broker.js'
import { envelopeLength, writeEnvelope } from '../remote/envelope.js'
import type { LinkMessage } from '../remote/link.js'
import { divertFrames } from './divert-frames.js'
import { LogCall, type LogCalls } from './log-call.js'
import { endOfLine } from './resp-frames.js'

/** What a {@link RedisPublisher} needs to know. */
export interface RedisPublisherOptions {
  readonly redis: Redis
  readonly node: string
  /** `SPUBLISH` in a cluster. */
  readonly command: 'PUBLISH' | 'SPUBLISH'
  /** Something has come. */
  heard(): void
  accepted(sequence: number): void
  /** The same of a message of the log. */
  logged(sequence: number, accepted: Accepted): void
  /** With the server's reply. */
  refused(sequence: number, reply: Error): void
}

/** A message on its way, and where to. */
interface PlainMessage {
  readonly head: string
  readonly message: LinkMessage
  readonly key: string | undefined
  readonly byteCount: number
}

/** Bytes that are encoded and written at once, at most; more when one message is larger. */
const MAX_CHUNK_BYTES = 262_144
const LINE_END = 0x0a0d
const MINUS = 0x2d
const PUSH = 0x3e
/** Stands for a command of ioredis, where messages have their sequence. */
const NO_SEQUENCE = 0

/**
 * Publishes over one connection. All messages of a turn of the event loop are encoded into one buffer and written at once, and their
 * replies are counted off without a command object and a promise for each: ioredis's own `publish` costs 6.2 us of CPU per message.
 */
export class RedisPublisher {
  readonly #options: RedisPublisherOptions
  #waiting: (PlainMessage | LogCall)[] = []
  /** What was written and not replied to, from `#head` on: replies come in that order. */
  #written: (number | LogCall)[] = []
  #head = 0
  readonly #flush = () => this.flush()

  constructor(options: RedisPublisherOptions) {
    this.#options = options
    divertFrames(options.redis, { heard: options.heard, take: (bytes, start, end) => this.#take(bytes, start, end) })
  }

  /** @param key Goes into the envelope when the channel does not tell it. */
  publish(channel: string, message: LinkMessage, key?: string): void {
    const payloadBytes = envelopeLength(message, key)
    const { command } = this.#options
    const head = `*3\r\n$${command.length}\r\n${command}\r\n$${Buffer.byteLength(channel)}\r\n${channel}\r\n$${payloadBytes}\r\n`
    if (this.#waiting.length === 0) setImmediate(this.#flush)
    this.#waiting.push({ head, message, key, byteCount: Buffer.byteLength(head) + payloadBytes + 2 })
  }

  /** Into the log; together with those before it, unless one of another kind is between. */
  append(calls: LogCalls, message: LinkMessage): void {
    const last = this.#waiting.at(-1)
    const call = calls.callFor(message, last)
    if (call === last) return
    if (this.#waiting.length === 0) setImmediate(this.#flush)
    this.#waiting.push(call)
  }

  /** Sends commands by ioredis between the messages: all commands on this connection while messages are under way. */
  ask<T>(commandCount: number, send: () => Promise<T>): Promise<T> {
    this.flush()
    for (let count = 0; count < commandCount; count++) this.#written.push(NO_SEQUENCE)
    return send()
  }

  flush(): void {
    const waiting = this.#waiting
    this.#waiting = []
    // Otherwise the connection is about to end, which is told elsewhere.
    if (!this.#options.redis.stream.writable) return
    let from = 0
    while (from < waiting.length) {
      let byteCount = 0
      let to = from
      do {
        byteCount += waiting[to]?.byteCount ?? 0
        to++
      } while (to < waiting.length && byteCount < MAX_CHUNK_BYTES)
      this.#write(waiting, from, to, byteCount)
      from = to
    }
  }

  #write(waiting: readonly (PlainMessage | LogCall)[], from: number, to: number, byteCount: number): void {
    const { redis, node } = this.#options
    const bytes = Buffer.allocUnsafe(byteCount)
    let at = 0
    for (let index = from; index < to; index++) {
      const each = waiting[index]
      if (each === undefined) continue
      if (each instanceof LogCall) {
        at = each.write(bytes, at, node)
        this.#written.push(each)
        continue
      }
      at += bytes.write(each.head, at)
      at = writeEnvelope(bytes, at, node, each.message, each.key)
      at = bytes.writeUInt16LE(LINE_END, at)
      this.#written.push(each.message.sequence)
    }
    redis.stream.write(bytes)
  }

  #take(bytes: Buffer, start: number, end: number): boolean {
    if (bytes[start] === PUSH || this.#head >= this.#written.length) return false
    const written = this.#written[this.#head++] ?? NO_SEQUENCE
    // Cut when half of it is done with, so that it costs O(1), amortised.
    if (this.#head * 2 >= this.#written.length) {
      this.#written = this.#written.slice(this.#head)
      this.#head = 0
    }
    if (written === NO_SEQUENCE) return false
    const { accepted, logged, refused } = this.#options
    if (bytes[start] === MINUS) {
      const reply = new Error(bytes.toString('utf8', start + 1, end - 2))
      for (const sequence of written instanceof LogCall ? written.sequences : [written]) refused(sequence, reply)
    } else if (written instanceof LogCall) {
      written.accepted(bytes.toString('latin1', endOfLine(bytes, start), end - 2), logged)
    } else accepted(written)
    return true
  }
}
