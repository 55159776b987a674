import { randomBytes } from 'node:crypto'
import { WebMQError } from 'webmq-client/protocol'
import type { MaybePromise } from '../../../kernel/base/maybe-promise.js'
import { within } from '../../../kernel/base/within.js'
import {
  type Accepted,
  BROKER_STOP_MS,
  type Broker,
  type BrokerCapabilities,
  type BrokerRoom,
  type BrokerSink,
  type BrokerStatus,
  type OutboundMessage,
  type Position,
  type Reader,
  type ReadRange,
  type ReadResult,
} from '../../../kernel/ports/broker.js'
import type { BrokerStats } from '../../../kernel/ports/broker-stats.js'
import { PublishIds } from '../dedupe/publish-ids.js'
import { HistoryLog } from '../log/history-log.js'
import { Bindings } from './bindings.js'
import { EPHEMERAL_KEY } from './ephemeral.js'
import { LINK_VERSION, type Link, type LinkDriver, type LinkEvents } from './link.js'
import { LinkKeeper } from './link-keeper.js'
import { LogReplica } from './log-replica.js'
import { MarkedLog } from './marked-log.js'
import type { RemoteBrokerOptions } from './options.js'
import { PendingPublishes } from './pending-publishes.js'
import { Publishes } from './publishes.js'
import { Receiver } from './receiver.js'

const NODE_BYTES = 8

/**
 * A broker behind links that may be lost: everything that is the same for all such brokers.
 *
 * While there is no link, publishes and binds wait. Each new link takes these steps in order:
 *
 * 1. It gets all bindings.
 * 2. Listeners are told of the gap.
 * 3. The log is followed from where the last link left it.
 * 4. Messages that were not accepted are sent again. Receivers drop duplicates.
 *
 * So a message whose publish resolved has reached every node whose bindings were live. The other nodes read it from the
 * log, or tell their listeners of a gap.
 */
export class RemoteBroker implements Broker {
  readonly name: string
  readonly capabilities: BrokerCapabilities
  readonly log: MarkedLog
  readonly #driver: LinkDriver
  readonly #options: RemoteBrokerOptions
  readonly #pending: PendingPublishes
  readonly #receiver: Receiver
  readonly #publishes: Publishes
  /** Both absent without history. */
  readonly #history: HistoryLog | undefined
  readonly #replica: LogReplica | undefined
  readonly #bindings: Bindings
  #keeper: LinkKeeper | undefined
  #sink: BrokerSink | undefined
  /** The bindings of the current link are live, and listeners were told of the gap before it. */
  #isReceiving = false
  /** The last reported status, as text. */
  status = 'not started'
  /** Why the broker takes no messages, in its own words. */
  #blockedReason: string | undefined
  #lostCount = 0

  /** @throws {WebMQError} `E_BROKER_MISSING` when the driver is written for another version of {@link LinkDriver}. */
  constructor(driver: LinkDriver, options: RemoteBrokerOptions) {
    assertVersion(driver)
    this.name = driver.name
    this.capabilities = driver.capabilities
    this.#driver = driver
    this.#options = options
    this.#bindings = new Bindings(options.brokerTimeoutMs)
    const receiver = new Receiver(options)
    this.#receiver = receiver
    const ids = new PublishIds(options)
    const pending = new PendingPublishes(options, ids, (detail) => this.#away(detail))
    this.#pending = pending
    const history = driver.capabilities.history ? new HistoryLog(options) : undefined
    this.#history = history
    this.log = new MarkedLog(history, (cause) => this.#keeper?.replace(cause))
    const replica = history && new LogReplica({ options, log: history, marked: this.log, receiver, pending })
    this.#replica = replica
    // Also without history: other nodes may log the keys of such messages.
    this.#bindings.keep(EPHEMERAL_KEY)
    this.#publishes = new Publishes({ ids, pending, takesBundles: driver.takesBundles, history, replica })
  }

  async start(sink: BrokerSink): Promise<void> {
    this.#sink = sink
    this.#receiver.start(randomBytes(NODE_BYTES).toString('hex'), sink)
    this.#replica?.start()
    this.#keeper = new LinkKeeper({
      linkEvents: (isCurrent) => this.#linkEvents(isCurrent),
      connect: (events, signal) => this.#connect(events, signal),
      prepare: (link, isFirst) => this.#prepare(link, isFirst),
      established: (link) => this.#established(link),
      lost: (cause) => this.#lost(cause),
    })
    try {
      await this.#keeper.start(this.#options.brokerStartTimeoutMs)
    } catch (cause) {
      await this.stop()
      if (cause instanceof WebMQError && cause.code === 'E_BROKER_REFUSED') throw cause
      throw new WebMQError('E_BROKER_UNAVAILABLE', {
        detail: `${this.name} at ${this.#driver.address}: ${cause instanceof Error ? cause.message : String(cause)}`,
        cause,
      })
    }
  }

  get room(): BrokerRoom {
    return this.#pending
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
    return this.#publishes.publish(message)
  }

  async publishBatch(messages: readonly OutboundMessage[]): Promise<readonly Accepted[]> {
    this.#assertStarted()
    return await this.#publishes.publishBatch(messages)
  }

  read(range: ReadRange, patterns: readonly string[], reader?: Reader): ReadResult | Promise<ReadResult> {
    if (this.#replica === undefined) throw new WebMQError('E_UNSUPPORTED', { detail: `history with ${this.name}` })
    this.#assertStarted()
    return this.#replica.read(range, patterns, reader)
  }

  logs(key: string): boolean {
    return this.#history?.logs(key) ?? false
  }

  retains(key: string): boolean {
    return this.#history?.retains(key) ?? false
  }

  position(): MaybePromise<Position | undefined> {
    return this.#replica?.end()
  }

  async reachEnd(): Promise<void> {
    this.#assertStarted()
    await this.#replica?.reachEnd()
  }

  setAddress(address: string): void {
    this.#driver.setAddress?.(address)
  }

  stats(): BrokerStats {
    const retained = this.#history?.retained?.stats()
    return {
      ...this.#pending.counts,
      ...this.#receiver.counts,
      lostCount: this.#lostCount,
      behindCount: this.#replica?.behindCount ?? 0,
      ...(this.#history === undefined ? undefined : { log: this.#history.stats(this.#replica?.lagMs) }),
      ...(retained === undefined ? undefined : { retained }),
    }
  }

  async stop(limitMs = BROKER_STOP_MS): Promise<void> {
    const keeper = this.#keeper
    if (keeper === undefined) return
    this.#keeper = undefined
    this.log.link = undefined
    const endMs = performance.now() + limitMs
    if (this.#pending.hasLink) await within(this.#pending.idle(), limitMs)
    await keeper.stop(Math.max(0, endMs - performance.now()))
    this.#replica?.stop()
    this.#unlink()
    this.#sink = undefined
    this.#receiver.stop()
    this.#pending.refuseAll('the server stops')
    this.#bindings.refuseAll(new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'the server stops' }))
  }

  #connect(events: LinkEvents, signal: AbortSignal): Promise<Link> {
    const { brokerNamespace: namespace, brokerHeartbeatMs: heartbeatMs } = this.#options
    return this.#driver.connect({ node: this.#receiver.node, namespace, heartbeatMs }, events, signal)
  }

  #linkEvents(isCurrent: () => boolean): Omit<LinkEvents, 'lost'> {
    return {
      deliver: (delivery) => {
        if (this.#isReceiving && isCurrent()) this.#receiver.deliver(delivery)
      },
      confirmed: (sequence, isCumulative, duplicateOf) => {
        if (!isCurrent()) return
        if (duplicateOf === undefined) this.#pending.confirm(sequence, isCumulative)
        else void this.#replica?.confirmDuplicate(sequence, duplicateOf)
      },
      refused: (sequence, cause) => {
        if (isCurrent()) this.#pending.refuse(sequence, cause)
      },
      blocked: (isBlocked, reason) => {
        if (isCurrent()) this.#setBlocked(isBlocked, reason)
      },
      logRefused: (reason) => {
        if (isCurrent() && this.#pending.hasLink) this.#tellOfBlock(reason !== undefined, reason)
      },
      malformed: (detail, pattern) => {
        if (isCurrent()) this.#receiver.malformed(detail, pattern)
      },
      surplus: () => this.#receiver.surplus(),
    }
  }

  /**
   * As {@link LinkOwner.prepare}. Messages that arrive before the bindings are live are
   * dropped: they are part of the gap.
   */
  async #prepare(link: Link, isFirst: boolean): Promise<void> {
    await this.#bindings.moveTo(link)
    if (!isFirst) this.#receiver.gap('broker-lost', (pattern) => !this.log.covers(pattern))
    this.#isReceiving = true
    if (link.log !== undefined) await this.#replica?.follow(link.log)
  }

  /** Reports the status first: a publish from its handler queues behind those that wait. */
  #established(link: Link): void {
    this.log.link = link.log
    this.#tellOfBlock(this.#pending.isBlocked, this.#blockedReason)
    this.#publishes.confirmLogged()
    this.#pending.use(link)
  }

  #lost(cause: Error): void {
    if (this.#pending.hasLink) this.#lostCount++
    this.#unlink(cause)
  }

  /** There is no link now. @param cause Absent when the node stops. */
  #unlink(cause?: Error): void {
    this.log.link = undefined
    this.#blockedReason = undefined
    this.#pending.lose()
    this.#isReceiving = false
    this.#bindings.lose()
    this.#tell('down', cause)
  }

  #setBlocked(isBlocked: boolean, reason?: string): void {
    if (isBlocked === this.#pending.isBlocked) return
    this.#blockedReason = isBlocked ? reason : undefined
    if (isBlocked) this.#pending.block(true)
    if (this.#pending.hasLink) this.#tellOfBlock(isBlocked, reason)
    if (!isBlocked) this.#pending.block(false)
  }

  #tellOfBlock(isBlocked: boolean, reason = 'it takes no messages'): void {
    this.#blockedReason = isBlocked ? reason : undefined
    if (isBlocked) this.#tell('blocked', new Error(reason))
    else this.#tell('up')
  }

  #tell(status: BrokerStatus, cause?: Error): void {
    this.status = cause === undefined ? status : `${status} (${cause.message})`
    this.#sink?.status(status, cause)
  }

  /** The cause, which clients do not see, names the broker's address. Clients see why a broker that is there takes nothing. */
  #away(detail: string): WebMQError {
    if (this.#blockedReason !== undefined)
      return new WebMQError('E_BROKER_UNAVAILABLE', { detail: `${this.#blockedReason}; ${detail}` })
    const cause = new Error(`${this.name} at ${this.#driver.address} is ${this.status}`)
    return new WebMQError('E_BROKER_UNAVAILABLE', { detail, cause })
  }

  #assertStarted(): void {
    if (this.#keeper === undefined) throw new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'it is not started' })
  }
}

/** One of another package may be older or newer than this server, whatever its types say. */
function assertVersion({ name, linkVersion }: { readonly name: string; readonly linkVersion: unknown }): void {
  if (linkVersion === LINK_VERSION) return
  const versions = `version ${String(linkVersion)} of webmq-server/brokers, and this server has version ${LINK_VERSION}`
  throw new WebMQError('E_BROKER_MISSING', { message: `the broker ${name} is written for ${versions}` })
}
