import { randomBytes } from 'node:crypto'
import { WebMQError } from 'webmq-client/protocol'
import type {
  Accepted,
  Broker,
  BrokerCapabilities,
  BrokerSink,
  BrokerStats,
  InboundMessage,
  OutboundMessage,
  Position,
  ReadRange,
  ReadResult,
} from '../../ports/broker.js'
import type { HistoryOptions } from '../../ports/history-rules.js'
import { DuplicateFilter } from '../dedupe/duplicate-filter.js'
import { PublishIds } from '../dedupe/publish-ids.js'
import { OrderedLog } from '../log/history-log.js'
import { Bindings } from './bindings.js'
import { bundleEnd, decodeBundle, encodeBundle } from './bundle.js'
import type { Link, LinkDelivery, LinkDriver, LinkEvents, LinkSource, LoggedDelivery } from './link.js'
import { LinkKeeper } from './link-keeper.js'
import { LogArrivals } from './log-arrivals.js'
import { PendingPublishes } from './pending-publishes.js'

/** Options of a {@link RemoteBroker}; as in {@link ServerOptions}. */
export interface RemoteBrokerOptions extends HistoryOptions {
  readonly brokerNamespace: string
  readonly brokerTimeoutMs: number
  readonly brokerStartTimeoutMs: number
  readonly brokerHeartbeatMs: number
  readonly brokerMaxPendingBytes: number
  readonly dedupeWindowMs: number
  readonly dedupeMaxIds: number
}

const NODE_BYTES = 8
/** For which a read waits for the log to come to the place where it is to begin. */
const MAX_ARRIVAL_MS = 2_000
/** What is pending when a node stops gets this long, or `brokerTimeoutMs` if that is shorter. */
const MAX_STOP_MS = 2_000
const DUPLICATE: Accepted = { isDuplicate: true }

/**
 * A broker that is reached over links which may be lost: everything that does not depend on which one it is.
 *
 * While there is no link, publishes and binds wait. A new link first gets all bindings; then listeners are told of the gap, the log is
 * followed from where it was left, and what was not accepted is sent again, in order; receivers drop what they have. So a message
 * whose publish resolved has reached every node that had its bindings live, and comes to every other from the log, or as a gap.
 */
export class RemoteBroker implements Broker {
  readonly name: string
  readonly capabilities: BrokerCapabilities
  readonly #driver: LinkDriver
  readonly #options: RemoteBrokerOptions
  readonly #bindings: Bindings
  readonly #pending: PendingPublishes
  readonly #ids: PublishIds
  readonly #log: OrderedLog
  readonly #arrivals = new LogArrivals()
  /** Messages that have come live, and those of the log, whose copy on this node may begin anew. */
  #duplicates: DuplicateFilter
  #loggedDuplicates: DuplicateFilter
  /** What had come of the log that was lost: some of it may be sent again into the one after it. */
  #lostLogDuplicates: DuplicateFilter | undefined
  /** Of the last message of the log. */
  #logSource: LinkSource | undefined
  #hasFollowed = false
  #keeper: LinkKeeper | undefined
  #sink: BrokerSink | undefined
  /** Names this life of the node to the others. */
  #node = ''
  /** Where messages are sent to; `undefined` until its bindings are live and its log is caught up with. */
  #link: Link | undefined
  /** The bindings of the link of the moment are live, and listeners were told of the gap before. */
  #isHearing = false
  #isBlocked = false
  #status = 'not started'
  /** Of the last message that was given to a link. */
  #sentSequence = 0
  #receivedCount = 0
  #surplusCount = 0
  #malformedCount = 0
  #lostCount = 0

  constructor(driver: LinkDriver, options: RemoteBrokerOptions) {
    this.name = driver.name
    this.capabilities = driver.capabilities
    this.#driver = driver
    this.#options = options
    this.#bindings = new Bindings(options.brokerTimeoutMs)
    this.#log = new OrderedLog(options)
    this.#duplicates = new DuplicateFilter(options)
    this.#loggedDuplicates = new DuplicateFilter(options)
    this.#ids = new PublishIds({ windowMs: options.dedupeWindowMs, maxIds: options.dedupeMaxIds })
    this.#pending = new PendingPublishes({
      maxBytes: options.brokerMaxPendingBytes,
      timeoutMs: options.brokerTimeoutMs,
      confirmsByLog: driver.confirmsByLog === true,
      reason: () => `${driver.name} at ${driver.address} is ${this.#status}`,
    })
  }

  async start(sink: BrokerSink): Promise<void> {
    this.#sink = sink
    this.#node = randomBytes(NODE_BYTES).toString('hex')
    this.#duplicates = new DuplicateFilter(this.#options)
    this.#hasFollowed = false
    const { brokerNamespace: namespace, brokerHeartbeatMs: heartbeatMs, brokerStartTimeoutMs } = this.#options
    const context = { node: this.#node, namespace, heartbeatMs }
    const keeper = new LinkKeeper({
      connect: (events, signal) => this.#driver.connect(context, events, signal),
      events: (isCurrent) => this.#events(isCurrent),
      prepare: (link, isFirst) => this.#prepare(link, isFirst),
      established: (link) => this.#established(link),
      lost: (cause) => this.#lost(cause),
      failed: (cause) => this.#unlink(cause),
    })
    this.#keeper = keeper
    try {
      await keeper.start(brokerStartTimeoutMs)
    } catch (cause) {
      await this.stop()
      if (cause instanceof WebMQError && cause.code === 'E_BROKER_REFUSED') throw cause
      throw new WebMQError('E_BROKER_UNAVAILABLE', {
        detail: `${this.name} at ${this.#driver.address}: ${cause instanceof Error ? cause.message : String(cause)}`,
        cause,
      })
    }
  }

  bind(pattern: string): Promise<void> {
    this.#assertStarted()
    return this.#bindings.bind(pattern)
  }

  unbind(pattern: string): void {
    this.#bindings.unbind(pattern)
  }

  publish(message: OutboundMessage): Promise<Accepted> | Accepted {
    this.#assertStarted()
    const { messageId } = message
    if (messageId === undefined) return this.#send(message)
    return this.#ids.once(messageId, () => this.#send(message))
  }

  async publishBatch(messages: readonly OutboundMessage[]): Promise<readonly Accepted[]> {
    const results = new Array<Accepted>(messages.length)
    const waiting: Promise<unknown>[] = []
    try {
      for (let next = 0; next < messages.length; ) {
        const from = next
        const end = this.#takesBundle(messages[from]) ? bundleEnd(messages, from) : from
        const to = Math.max(end, from + 1)
        const accepted = this.#publishRun(messages, from, to)
        waiting.push(Promise.resolve(accepted).then((accepted) => results.fill(accepted, from, to)))
        next = to
      }
    } catch (error) {
      // Beside those that are on their way, and may fail too.
      waiting.push(Promise.reject(error))
    }
    await Promise.all(waiting)
    return results
  }

  read(range: ReadRange, patterns: readonly string[]): ReadResult | Promise<ReadResult> {
    if (!this.capabilities.history) throw new WebMQError('E_UNSUPPORTED', { detail: `history with ${this.name}` })
    this.#assertStarted()
    const { since } = range
    const { epoch, offset } = this.#log.position
    if (since?.epoch !== epoch || since.offset <= offset) return this.#log.read(range, patterns)
    // Another node was ahead of this one when it gave that position: to say now that it is of no log would be a gap that is none.
    const waitMs = Math.min(MAX_ARRIVAL_MS, this.#options.brokerTimeoutMs)
    return this.#arrivals.until(since.offset, waitMs).then(() => this.#log.read(range, patterns))
  }

  position(): Position | undefined {
    return this.capabilities.history && this.#hasFollowed ? this.#log.position : undefined
  }

  stats(): BrokerStats {
    const { count, byteCount, acceptedCount, rejectedCount } = this.#pending
    return {
      acceptedCount,
      rejectedCount,
      receivedCount: this.#receivedCount,
      surplusCount: this.#surplusCount,
      malformedCount: this.#malformedCount,
      pendingCount: count,
      pendingBytes: byteCount,
      lostCount: this.#lostCount,
    }
  }

  async stop(): Promise<void> {
    const keeper = this.#keeper
    if (keeper === undefined) return
    this.#keeper = undefined
    if (this.#link !== undefined)
      await within(this.#pending.idle(), Math.min(MAX_STOP_MS, this.#options.brokerTimeoutMs))
    await keeper.stop()
    this.#arrivals.giveUp()
    this.#link = undefined
    this.#isHearing = false
    this.#bindings.lose()
    this.#tell('down')
    this.#sink = undefined
    this.#pending.refuseAll('the server stops')
    this.#bindings.refuseAll(new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'the server stops' }))
  }

  /** One message, or several as one bundle. */
  #publishRun(messages: readonly OutboundMessage[], from: number, to: number): Promise<Accepted> | Accepted {
    const first = messages[from] as OutboundMessage
    if (to - from === 1) return this.publish(first)
    this.#assertStarted()
    return this.#handOn(this.#pending.addBundle(first.key, encodeBundle(messages, from, to), to - from))
  }

  #send(outbound: OutboundMessage): Promise<Accepted> {
    return this.#handOn(this.#pending.add(outbound, this.#isLogged(outbound.key)))
  }

  #handOn({ message, accepted }: ReturnType<PendingPublishes['add']>): Promise<Accepted> {
    if (this.#link !== undefined && !this.#isBlocked) {
      this.#sentSequence = message.sequence
      this.#link.publish(message)
    }
    return accepted
  }

  /** What one link tells; `isCurrent` says whether it is still the one of the moment. */
  #events(isCurrent: () => boolean): Omit<LinkEvents, 'lost'> {
    return {
      deliver: (delivery) => {
        if (this.#isHearing && isCurrent()) this.#deliver(delivery)
      },
      confirmed: (sequence, isCumulative, accepted) => {
        if (isCurrent()) this.#pending.confirm(sequence, isCumulative, accepted)
      },
      refused: (sequence, cause) => {
        if (isCurrent()) this.#pending.refuse(sequence, cause)
      },
      blocked: (isBlocked, reason) => {
        if (isCurrent()) this.#setBlocked(isBlocked, reason)
      },
      malformed: () => {
        this.#malformedCount++
      },
      surplus: () => {
        this.#receivedCount++
        this.#surplusCount++
      },
    }
  }

  /** Until the bindings are live nothing that the link brought was delivered: what came before the gap is told is a part of it. */
  async #prepare(link: Link, isFirst: boolean): Promise<void> {
    await this.#bindings.moveTo(link)
    if (!isFirst) this.#sink?.gap('broker-lost', (pattern) => !this.#covers(pattern))
    this.#isHearing = true
    await this.#follow(link)
  }

  async #follow(link: Link): Promise<void> {
    if (!this.capabilities.history || link.follow === undefined) return
    const place = this.#hasFollowed ? { ...this.#log.position, source: this.#logSource } : undefined
    await link.follow(place, {
      begins: (start, isContinued) => {
        if (!isContinued) this.#restartLog(start)
      },
      message: (delivery) => this.#deliverLogged(delivery),
    })
  }

  #restartLog(start: Position): void {
    const reason = start.epoch === this.#log.position.epoch ? 'history-expired' : 'epoch-changed'
    this.#log.restart(start.epoch, start.offset)
    this.#logSource = undefined
    this.#lostLogDuplicates = this.#hasFollowed ? this.#loggedDuplicates : undefined
    this.#loggedDuplicates = new DuplicateFilter(this.#options)
    this.#arrivals.giveUp()
    if (this.#hasFollowed) this.#sink?.gap(reason, (pattern) => this.#covers(pattern))
    this.#hasFollowed = true
  }

  #established(link: Link): void {
    this.#link = link
    this.#tell(this.#isBlocked ? 'blocked' : 'up')
    if (!this.#isBlocked) this.#sendAfter(0)
  }

  #lost(cause: Error): void {
    if (this.#link !== undefined) this.#lostCount++
    this.#unlink(cause)
  }

  #unlink(cause: Error): void {
    this.#link = undefined
    this.#isHearing = false
    this.#isBlocked = false
    this.#bindings.lose()
    this.#tell('down', cause)
  }

  #setBlocked(isBlocked: boolean, reason?: string): void {
    if (isBlocked === this.#isBlocked) return
    this.#isBlocked = isBlocked
    if (this.#link === undefined) return
    if (isBlocked) this.#tell('blocked', new Error(reason ?? 'it takes no messages'))
    else {
      this.#tell('up')
      this.#sendAfter(this.#sentSequence)
    }
  }

  #sendAfter(sequence: number): void {
    for (const message of [...this.#pending.messagesAfter(sequence)]) {
      this.#sentSequence = Math.max(this.#sentSequence, message.sequence)
      this.#link?.publish(message)
    }
  }

  #deliver(delivery: LinkDelivery): void {
    const { key, payload, isBinary, source } = delivery
    if (source?.isBundle === true) {
      this.#deliverBundle(key, payload, source)
      return
    }
    this.#receivedCount++
    const nowMs = delivery.messageId === undefined ? 0 : performance.now()
    if (this.#duplicates.has(delivery, nowMs)) this.#surplusCount++
    else if (this.#sink?.deliver(this.#inbound(key, payload, isBinary, source, undefined)) === true)
      this.#duplicates.note(delivery, nowMs)
    else this.#surplusCount++
  }

  #deliverLogged(delivery: LoggedDelivery): void {
    const { key, payload, isBinary, source, offset, timeMs } = delivery
    this.#receivedCount++
    const isOwn = source?.node === this.#node
    if (this.#loggedDuplicates.has(delivery, timeMs)) {
      this.#surplusCount++
      // Unless it is the same that was sent again, another has its id.
      if (isOwn) this.#pending.confirm(source.sequence, false, DUPLICATE)
      return
    }
    this.#loggedDuplicates.note(delivery, timeMs)
    this.#log.follow(offset, key, payload, isBinary, timeMs)
    this.#arrivals.reached(offset)
    this.#logSource = source
    const { epoch } = this.#log.position
    // Caught up with before it would be sent again.
    if (isOwn) this.#pending.confirm(source.sequence, false, { position: { epoch, offset }, isDuplicate: false })
    if (this.#lostLogDuplicates?.has(delivery, timeMs) === true) return
    this.#sink?.deliver(this.#inbound(key, payload, isBinary, source, { epoch, offset }))
  }

  #inbound(
    key: string,
    payload: Uint8Array,
    isBinary: boolean,
    source: LinkSource | undefined,
    position: Position | undefined,
  ): InboundMessage {
    const origin = source?.node === this.#node ? source.origin : undefined
    if (position === undefined)
      return origin === undefined ? { key, payload, isBinary } : { key, payload, isBinary, origin }
    return origin === undefined ? { key, payload, isBinary, position } : { key, payload, isBinary, position, origin }
  }

  #deliverBundle(key: string, payload: Uint8Array, source: LinkSource): void {
    const messages = decodeBundle(key, payload)
    this.#receivedCount += messages?.length ?? 1
    if (messages === undefined) {
      this.#malformedCount++
      return
    }
    const bundle = { source }
    let wantedCount = 0
    if (!this.#duplicates.has(bundle, 0)) {
      for (const message of messages) if (this.#sink?.deliver(message) === true) wantedCount++
    }
    if (wantedCount > 0) this.#duplicates.note(bundle, 0)
    this.#surplusCount += messages.length - wantedCount
  }

  #isLogged(key: string): boolean {
    return this.capabilities.history && this.#log.logs(key)
  }

  #covers(pattern: string): boolean {
    return this.capabilities.history && this.#log.covers(pattern)
  }

  /** A bundle has one place, and each message of the log has one of its own. */
  #takesBundle(message: OutboundMessage | undefined): boolean {
    return this.#driver.takesBundles && message !== undefined && !this.#isLogged(message.key)
  }

  #tell(status: 'up' | 'blocked' | 'down', cause?: Error): void {
    this.#status = cause === undefined ? status : `${status} (${cause.message})`
    this.#sink?.status(status, cause)
  }

  #assertStarted(): void {
    if (this.#keeper === undefined) throw new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'it is not started' })
  }
}

async function within(promise: Promise<void>, limitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs)
  })
  await Promise.race([promise, limit])
  clearTimeout(timer)
}
