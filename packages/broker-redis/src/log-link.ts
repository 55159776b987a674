import { setTimeout } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { WebMQError } from 'webmq-client/protocol'
import {
  decodeEnvelope,
  type LinkEvents,
  type LinkLog,
  type LinkMessage,
  type LogFollower,
  LogRestart,
} from 'webmq-server/brokers'
import type { LogPlace, Position, SharedLog } from 'webmq-server/ports'
import { refusesWrites } from './error.js'
import { appendScript, type LogCall, openScript, type RedisLog } from './log.js'
import { decodeLogBatch, envelopesOf, type LogBatch, LogReader, type LogStart } from './log-reader.js'
import type { RedisPublisher } from './publisher.js'
import type { ReceivedMessage, SubscriptionKind } from './subscriber.js'

/** Time that a node gives others to say that the log has its end, when it cannot say so itself. */
const MAX_VOUCH_MS = 1_000
const VOUCH_POLL_MS = 50
/** A server that refuses writes is asked this often whether it still does. */
const WRITABLE_POLL_MS = 1_000

/** The server that has the log, over one link. */
export interface LogServer {
  ask<T>(send: (redis: Redis) => Promise<T>): Promise<T>
  subscribe(kind: SubscriptionKind, name: string): Promise<void>
  lose(cause: unknown): void
}

/** The log over one link: it appends messages, and follows the log. */
export class LogLink implements LinkLog {
  readonly #log: RedisLog
  readonly #server: LogServer
  readonly #publisher: RedisPublisher
  readonly #events: LinkEvents
  readonly #channel: Buffer
  #reader: LogReader | undefined
  #isOverhearing = false
  /** Why the server does not let a node without history remove the mark of the log. */
  #signRefusal: string | undefined
  /** Makes an empty call; `undefined` until the log is open. */
  #createCall: (() => LogCall) | undefined
  /** Runs while the server refuses writes. */
  #writableTimer: NodeJS.Timeout | undefined

  constructor(log: RedisLog, server: LogServer, publisher: RedisPublisher, events: LinkEvents) {
    this.#log = log
    this.#server = server
    this.#publisher = publisher
    this.#events = events
    this.#channel = Buffer.from(log.channel)
  }

  async follow(after: Position | undefined, follower: LogFollower): Promise<void> {
    const log = this.#log
    const server = this.#server
    const pageFrom = (from: string, count: number) =>
      server.ask((redis) => redis.xrangeBuffer(log.stream, from, '+', 'COUNT', count))
    const reader = new LogReader(pageFrom, log, follower)
    this.#reader = reader
    const start = await openLog(log, server, after, this.#subscribe())
    if (reader.isStopped) return
    const askedMs = performance.now()
    await reader.read(start)
    this.followed(askedMs)
    if (!reader.isStopped) this.#createCall = log.calls(start.term)
  }

  /** On a node without history: brings what other nodes log, without positions. */
  async overhear(): Promise<void> {
    if (this.#log.isFollowed) return
    await this.#subscribe()
    this.#isOverhearing = true
    // What this node publishes is not logged.
    await this.#server
      .ask((redis) => redis.hdel(this.#log.state, 'rules'))
      .catch((cause: Error) => {
        if (!(cause instanceof WebMQError) && !refusesWrites(cause)) throw cause
        this.#signRefusal = cause.message
      })
  }

  async isMarked(): Promise<boolean> {
    return (await this.#server.ask((redis) => redis.hget(this.#log.state, 'rules'))) === this.#log.rules
  }

  async unmark(): Promise<void> {
    await this.#server.ask((redis) => redis.hset(this.#log.state, 'rules', ''))
  }

  /** All links are lost by it. */
  async begin(): Promise<never> {
    const { keys, leadArguments, publishScript, rules } = this.#log
    const call = [...keys, ...leadArguments, '', '0', '', '', '2', publishScript, rules]
    await this.#server.ask((redis) => redis.evalsha(openScript.sha, keys.length, ...call))
    throw new LogRestart('another epoch of the log has begun')
  }

  /** The link has brought all that was logged until then. @param untilMs By `performance.now()`. */
  followed(untilMs: number): void {
    const log = this.#log
    if (this.#reader?.isLive === true) log.followedUntilMs = Math.max(untilMs, log.followedUntilMs ?? untilMs)
  }

  /** The link is over. */
  stop(): void {
    this.#reader?.stop()
    this.#stopAsking()
  }

  /** The server refuses writes for now. Reports it once, and when it takes them again. */
  refused(reason: string): void {
    if (!this.#log.isFollowed || this.#writableTimer !== undefined) return
    this.#events.logRefused(reason)
    this.#writableTimer = setInterval(() => void this.#askWhetherWritable(), WRITABLE_POLL_MS).unref()
  }

  /** A small write as the scripts make them, beside what they keep. */
  async #askWhetherWritable(): Promise<void> {
    try {
      await this.#server.ask((redis) => redis.hset(this.#log.state, 'asked', Date.now()))
    } catch (error) {
      // Any other error says nothing about room: the next message that is logged will tell.
      if (error instanceof Error && refusesWrites(error)) return
    }
    // The link may have stopped meanwhile.
    if (this.#writableTimer === undefined) return
    this.#stopAsking()
    this.#events.logRefused()
  }

  #stopAsking(): void {
    clearInterval(this.#writableTimer)
    this.#writableTimer = undefined
  }

  async end(): Promise<LogPlace> {
    const [epoch, end] = await this.#server.ask((redis) => redis.hmget(this.#log.state, 'epoch', 'end'))
    return { epoch: epoch ?? '', offset: Number(end ?? 0) }
  }

  /** As {@link SharedLog.risk}. A user who may not ask for the configuration is told of `appendonly` alone. */
  async risk(): Promise<string | undefined> {
    if (!this.#log.isFollowed) {
      if (this.#signRefusal === undefined) return undefined
      return `this node logs nothing and cannot note that there, so who comes back to another one may miss in silence what it published: ${this.#signRefusal}`
    }
    const info = await this.#server.ask((redis) => redis.info('persistence'))
    if (/^aof_enabled:0/m.test(info)) {
      return 'appendonly is no: a Redis that is killed, or whose machine fails, loses what it took after its last snapshot'
    }
    const fsync = await this.#server.ask((redis) => redis.config('GET', 'appendfsync'))
    const policy = Array.isArray(fsync) ? String(fsync[1]) : undefined
    if (policy === undefined || policy === 'always') return undefined
    const lost = policy === 'everysec' ? 'the last one or two seconds' : 'what the system has not written to its disk'
    return `appendfsync is ${policy}: a Redis whose machine fails loses ${lost}`
  }

  /** Appends a message to the log. Only after `follow`. */
  append(message: LinkMessage): void {
    if (this.#createCall !== undefined) this.#publisher.append(this.#createCall, message)
  }

  /** Takes a message of the log's channel; returns `false` for any other message. */
  take({ channel, payload }: ReceivedMessage): boolean {
    if (channel.length !== this.#channel.length || !channel.equals(this.#channel)) return false
    const batch = decodeLogBatch(payload)
    if (batch !== undefined && this.#isOverhearing) this.#overheard(batch)
    const broken = batch === undefined ? undefined : this.#reader?.take(batch)
    if (batch === undefined) this.#events.malformed('no messages of the log, to its channel')
    if (broken !== undefined) this.#server.lose(broken)
    return true
  }

  #subscribe(): Promise<void> {
    return this.#server.subscribe(this.#log.channelKind, this.#log.channel)
  }

  #overheard(batch: LogBatch): void {
    for (const envelope of envelopesOf(batch)) {
      const delivery = decodeEnvelope(undefined, envelope)
      if (delivery === undefined) this.#events.malformed('an entry of the log that is no message', '#')
      else this.#events.deliver(delivery)
    }
  }
}

/**
 * Opens the log at a server: loads the scripts, and asks where to begin, until this node or another has said whether
 * the log is whole in this term.
 * @param subscribed Resolves when the channel is subscribed: it tells of everything that happens after the opening.
 * @throws {WebMQError} `E_BROKER_REFUSED` when the server cannot hold a log.
 */
async function openLog(
  log: RedisLog,
  server: LogServer,
  after: Position | undefined,
  subscribed: Promise<void>,
): Promise<LogStart> {
  const scripts = [appendScript, openScript].map(({ source }) => server.ask((redis) => redis.script('LOAD', source)))
  await Promise.all([assertRunId(server), subscribed, ...scripts])
  const position = [after?.epoch ?? '', String(after?.offset ?? 0), log.timeAt(after?.offset)]
  const lead = [...log.keys, ...log.leadArguments, ...position]
  const { publishScript, rules, followedUntilMs } = log
  const awayMs = () => (followedUntilMs === undefined ? '' : Math.ceil(performance.now() - followedUntilMs))
  for (let leftMs = MAX_VOUCH_MS; ; leftMs -= VOUCH_POLL_MS) {
    const isLastCall = leftMs <= 0 ? '1' : '0'
    const reply = await server.ask((redis) =>
      redis.evalsha(openScript.sha, log.keys.length, ...lead, awayMs(), isLastCall, publishScript, rules),
    )
    const [epoch, offset, isContinued, term, began] = Array.isArray(reply) ? reply.map(String) : []
    if (epoch !== undefined && term !== undefined)
      return {
        start: { epoch, offset: Number(offset), fingerprint: 0 },
        isContinued: isContinued === '1',
        began: Number(began),
        term,
      }
    if (isLastCall === '1') throw new Error('the log answers otherwise than expected')
    await setTimeout(VOUCH_POLL_MS)
  }
}

/** Without it, nobody could see that the log may have lost its end. */
async function assertRunId(server: LogServer): Promise<void> {
  const info = await server.ask((redis) => redis.info('server'))
  if (/^run_id:\w+/m.test(info)) return
  const detail = 'a Redis whose INFO has no run_id cannot hold a log: a restart would go unnoticed'
  throw new WebMQError('E_BROKER_REFUSED', { detail })
}
