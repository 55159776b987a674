import type { Position } from '../../ports/broker.js'
import type { HistoryOptions } from '../../ports/history-rules.js'
import type { LinkContext, LinkDelivery, LogFollower } from '../remote/link.js'
import type { AmqpConnection } from './amqp-connection.js'
import type { LogBookmark } from './log-bookmark.js'
import { LogConsumer } from './log-consumer.js'
import { newEpoch } from './log-header.js'
import { LogLife } from './log-life.js'
import { LogMarker } from './log-marker.js'
import { declareLog, logQueueOf, segmentBytesOf } from './log-queue.js'
import type { LogRecord } from './log-record.js'
import { firstRecord, scanLog } from './log-scan.js'
import { LogTags } from './log-tags.js'

/** What a {@link LogFollow} works with. */
export interface LogFollowOptions {
  readonly publishing: AmqpConnection
  readonly consuming: AmqpConnection
  readonly context: LinkContext
  readonly history: HistoryOptions
  /** The node's, over all its links. */
  readonly bookmark: LogBookmark
}

/** What is told beside the log itself. */
export interface LogFollowEvents {
  heard(): void
  /** A message that is not logged. */
  deliver(delivery: LinkDelivery): void
  malformed(detail: string): void
  /** A message came that is not of the log. */
  surplus(): void
  lost(cause: Error): void
}

/** Where to begin. */
interface LogStart {
  /** Offset in the queue of the first record that is to come. */
  readonly offset: number
  readonly life: LogLife
  /** Of what came before, for messages that tell no time. */
  readonly timeMs: number
  readonly isContinued: boolean
}

/**
 * RabbitMQ gives one offset to notes of its own at the beginning of a segment, and does not deliver them. What is lost is whole segments: their notes and
 * a message at least.
 */
const MAX_HOLE = 1

/**
 * Follows the log, a stream queue, from a place on: the offset of a message is its offset in the queue and one, for there 0 is the first.
 *
 * A queue that was deleted, or has lost its end, begins its offsets again. So a node that comes back first looks whether what it has seen is still where it was.
 */
export class LogFollow {
  readonly #options: LogFollowOptions
  readonly #events: LogFollowEvents
  readonly #queue: string
  readonly #marker: LogMarker
  readonly #tags: LogTags
  #life = new LogLife(0)
  #consumer: LogConsumer | undefined
  #follower: LogFollower | undefined
  /** Of the queue: the next that must come. */
  #nextOffset = 0
  #timeMs = 0
  /** When this offset has come, everything has that was there when it was asked for. */
  #awaitedOffset = 0
  #caughtUp: (() => void) | undefined
  #isStopped = false

  /** Declares the log. The exchange must be there. */
  static async open(options: LogFollowOptions, events: LogFollowEvents): Promise<LogFollow> {
    const { publishing, consuming, context, history } = options
    await declareLog(consuming, context.namespace, history)
    const queue = logQueueOf(context.namespace)
    return new LogFollow(options, events, queue, await LogMarker.open(publishing, consuming, queue, events.lost))
  }

  private constructor(options: LogFollowOptions, events: LogFollowEvents, queue: string, marker: LogMarker) {
    this.#options = options
    this.#events = events
    this.#queue = queue
    this.#marker = marker
    this.#tags = new LogTags({
      maxBytes: segmentBytesOf(options.history),
      write: () => marker.write({ epoch: options.bookmark.epoch }),
    })
  }

  /** As {@link Link.follow}. */
  async follow(after: Position | undefined, follower: LogFollower): Promise<void> {
    const { bookmark } = this.#options
    this.#awaitedOffset = await this.#marker.place({ candidate: newEpoch() })
    const start = await this.#findStart(after)
    this.#follower = follower
    this.#life = start.life
    this.#timeMs = start.timeMs
    this.#nextOffset = start.offset
    // What is between is gone, and a hole if it is to be continued.
    if (after !== undefined && start.isContinued) follower.begins(after, true)
    else this.#nextOffset = -1
    const caughtUp = new Promise<void>((resolve) => {
      this.#caughtUp = resolve
    })
    if (this.#isStopped) return
    this.#consumer = await LogConsumer.open(this.#options.consuming, {
      queue: this.#queue,
      from: start.offset,
      take: (record) => this.#takeAny(record),
      takeOwn: (_, delivery, logged) => this.#takeMessage(logged.offset, logged.timeMs, delivery),
      lost: this.#events.lost,
    })
    await caughtUp
    if (!start.isContinued) this.#marker.write({ epoch: bookmark.epoch })
  }

  /** Takes nothing more. */
  stop(): void {
    this.#isStopped = true
    this.#tags.stop()
    this.#consumer?.stop()
  }

  async #findStart(after: Position | undefined): Promise<LogStart> {
    const { bookmark, consuming: connection } = this.#options
    const scan = { connection, queue: this.#queue, lost: this.#events.lost }
    const state = after === undefined ? 'unknown' : await this.#compare(after)
    if (state === 'same') {
      const offset = bookmark.seenOffset + 1
      return { offset, life: new LogLife(offset, bookmark.epoch), timeMs: this.#timeMs, isContinued: true }
    }
    if (state === 'another') {
      this.#awaitedOffset = await this.#marker.place({ candidate: newEpoch(), denies: bookmark.epoch })
    }
    const { life, timeMs } = await scanLog(scan, this.#awaitedOffset, state === 'another')
    return { offset: life.sinceOffset, life: new LogLife(life.sinceOffset, life.epoch), timeMs, isContinued: false }
  }

  /** Whether what this node has seen is still there, or is gone as old messages go, or never was in this log. */
  async #compare(after: Position): Promise<'same' | 'unknown' | 'another'> {
    const { bookmark, consuming: connection } = this.#options
    const { anchorOffset, epoch, seenOffset } = bookmark
    if (anchorOffset === undefined || epoch !== after.epoch) return 'unknown'
    if (this.#awaitedOffset <= seenOffset) return 'another'
    const scan = { connection, queue: this.#queue, lost: this.#events.lost }
    const { offset, delivery, mark } = await firstRecord(scan, anchorOffset)
    if (offset > anchorOffset) return 'unknown'
    return bookmark.isAnchor(delivery?.source, mark?.nonce) ? 'same' : 'another'
  }

  #takeAny({ offset, timeMs, mark, delivery }: LogRecord): void {
    if (this.#isStopped) return
    if (timeMs !== undefined) this.#timeMs = timeMs
    if (mark === undefined && delivery !== undefined) {
      this.#takeMessage(offset, timeMs ?? this.#untoldTimeMs(), delivery)
      return
    }
    this.#events.heard()
    if (!this.#isNext(offset)) return
    if (mark === undefined) {
      this.#options.bookmark.saw(offset)
      this.#events.malformed('not sent to the exchange, or with a key or a text that is not valid')
    } else {
      this.#life.marked(mark, offset)
      if (this.#life.epoch !== this.#options.bookmark.epoch) this.#begin(offset + 1)
      this.#options.bookmark.sawMark(offset, mark.nonce)
      if (mark.epoch !== undefined) this.#tags.named()
    }
    this.#passed(offset)
  }

  #takeMessage(offset: number, timeMs: number, delivery: LinkDelivery): void {
    if (this.#isStopped) return
    this.#events.heard()
    if (!this.#isNext(offset)) return
    const { bookmark, history } = this.#options
    const { key, payload, isBinary, source, messageId } = delivery
    if (source === undefined) {
      bookmark.saw(offset)
      this.#tags.unnamed(payload.length)
    } else {
      bookmark.sawMessage(offset, source)
      this.#timeMs = timeMs
      this.#tags.named()
    }
    if (history.history.ruleOf(key) === undefined) this.#passOn(delivery)
    else this.#follower?.message({ key, payload, isBinary, source, messageId, offset: offset + 1, timeMs })
    this.#passed(offset)
  }

  /**
   * What is not logged, and comes because it is bound to the same queue: keys of the server's own, for those who listen with a pattern that is covered but for
   * them. Others come by the node's queue: bindings of rules that have gone stay until somebody unbinds them.
   */
  #passOn(delivery: LinkDelivery): void {
    if (delivery.key.startsWith('$')) this.#events.deliver(delivery)
    else this.#events.surplus()
  }

  /** Begins with what comes first, and finds holes. */
  #isNext(offset: number): boolean {
    if (this.#nextOffset < 0) this.#begin(offset)
    else if (offset > this.#nextOffset + MAX_HOLE) {
      // Would be a hole again the next time.
      this.#options.bookmark.forget()
      this.#events.lost(new Error(`the log no longer has what stood from ${this.#nextOffset} to ${offset - 1}`))
      return false
    }
    this.#nextOffset = offset + 1
    return true
  }

  #begin(nextOffset: number): void {
    const epoch = this.#life.epoch ?? ''
    this.#options.bookmark.begin(epoch, nextOffset)
    this.#follower?.begins({ epoch, offset: nextOffset }, false)
  }

  #passed(offset: number): void {
    if (offset < this.#awaitedOffset || this.#caughtUp === undefined) return
    this.#caughtUp()
    this.#caughtUp = undefined
  }

  /** Of a message that does not tell: now, or, if it may have been there for long, that of the last that did. */
  #untoldTimeMs(): number {
    return this.#caughtUp === undefined ? Date.now() : this.#timeMs
  }
}
