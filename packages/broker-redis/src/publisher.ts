import type { ChainableCommander, Redis } from 'ioredis'
import { encodeEnvelope, type LinkMessage } from 'webmq-server/brokers'
import type { LogPlace } from 'webmq-server/ports'
import { isReply } from './error.js'
import { LogCall } from './log.js'

interface ChannelMessage {
  readonly channel: string
  readonly envelope: Buffer
  readonly sequence: number
}

type Outgoing = ChannelMessage | LogCall

/** What a {@link RedisPublisher} reports. */
export interface PublisherReports {
  /** The server has answered. */
  alive(): void
  /** @param duplicateOf As in {@link LinkEvents.confirmed}. */
  confirmed(sequence: number, duplicateOf?: LogPlace): void
  refused(sequence: number, reply: Error): void
  lose(cause: unknown): void
}

/** A pipeline joins its commands into one buffer before it writes them: this bounds the buffer. */
const MAX_PIPELINE_BYTES = 262_144

/** Publishes over one connection. All messages of a turn go out in one pipeline, which is one write. */
export class RedisPublisher {
  readonly #redis: Redis
  readonly #node: string
  readonly #isShard: boolean
  readonly #reports: PublisherReports
  #waiting: Outgoing[] = []
  readonly #flush = () => this.#send()

  /** @param isShard Channels are sharded. */
  constructor(redis: Redis, node: string, isShard: boolean, reports: PublisherReports) {
    this.#redis = redis
    this.#node = node
    this.#isShard = isShard
    this.#reports = reports
  }

  /** @param key Given when the channel does not tell the key; the envelope then holds it. */
  publish(channel: string, message: LinkMessage, key?: string): void {
    const envelope = encodeEnvelope(this.#node, message, key)
    this.#add({ channel, envelope, sequence: message.sequence })
  }

  /** Appends to the log. Consecutive messages share a call of the script. @param createCall Makes an empty one. */
  append(createCall: () => LogCall, message: LinkMessage): void {
    const last = this.#waiting.at(-1)
    const call = last instanceof LogCall && last.hasRoom ? last : createCall()
    call.add(message, encodeEnvelope(this.#node, message, message.key))
    if (call !== last) this.#add(call)
  }

  #add(outgoing: Outgoing): void {
    if (this.#waiting.length === 0) setImmediate(this.#flush)
    this.#waiting.push(outgoing)
  }

  #send(): void {
    const waiting = this.#waiting
    this.#waiting = []
    let batch: Outgoing[] = []
    let byteCount = 0
    for (const outgoing of waiting) {
      batch.push(outgoing)
      byteCount += outgoing instanceof LogCall ? outgoing.byteCount : outgoing.envelope.length
      if (byteCount < MAX_PIPELINE_BYTES) continue
      this.#sendGuarded(batch)
      batch = []
      byteCount = 0
    }
    if (batch.length > 0) this.#sendGuarded(batch)
  }

  /** It rejects for an answer that nobody expects, or an error of the library: the messages stay unanswered. */
  #sendGuarded(batch: readonly Outgoing[]): void {
    this.#sendBatch(batch).catch((cause: unknown) => this.#reports.lose(cause))
  }

  async #sendBatch(batch: readonly Outgoing[]): Promise<void> {
    const redis = this.#redis
    const [first] = batch
    if (batch.length === 1 && first !== undefined) {
      // A pipeline for one bundle per turn took half of the fan-out to 10 connections (ADR 13).
      const result = await this.#command(redis, first).then(
        (reply) => [null, reply] as const,
        (error: Error) => [error, undefined] as const,
      )
      this.#reports.alive()
      this.#settle(first, result)
      return
    }
    const pipeline = redis.pipeline()
    for (const outgoing of batch) void this.#command(pipeline, outgoing)
    const results = (await pipeline.exec()) ?? []
    this.#reports.alive()
    for (let index = 0; index < results.length; index++) this.#settle(batch[index], results[index])
  }

  #command(commander: Redis, outgoing: Outgoing): Promise<unknown>
  #command(commander: ChainableCommander, outgoing: Outgoing): unknown
  #command(commander: Redis | ChainableCommander, outgoing: Outgoing): unknown {
    if (outgoing instanceof LogCall) return outgoing.send(commander)
    const { channel, envelope } = outgoing
    return this.#isShard ? commander.spublish(channel, envelope) : commander.publish(channel, envelope)
  }

  #settle(outgoing: Outgoing | undefined, result: readonly [error: Error | null, reply: unknown] | undefined): void {
    if (outgoing === undefined || result === undefined) return
    const [error, reply] = result
    if (error === null) this.#accepted(outgoing, reply)
    else if (isReply(error)) this.#refused(outgoing, error)
    // Any other error ends the connection, which RedisConnection reports with its cause.
  }

  #accepted(outgoing: Outgoing, reply: unknown): void {
    if (outgoing instanceof LogCall) outgoing.accepted(String(reply), this.#reports)
    else this.#reports.confirmed(outgoing.sequence)
  }

  #refused(outgoing: Outgoing, reply: Error): void {
    const sequences = outgoing instanceof LogCall ? outgoing.sequences : [outgoing.sequence]
    for (const sequence of sequences) this.#reports.refused(sequence, reply)
  }
}
