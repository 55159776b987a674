import type { Server } from 'node:http'
import { WebMQError } from 'webmq-client/protocol'
import type {
  AcceptOptions,
  ConnectionId,
  FrameData,
  GroupId,
  GroupOverflow,
  OutboxLevel,
  Rejection,
  Transport,
  TransportAddress,
  TransportCapabilities,
  TransportSink,
  TransportStats,
  UpgradeId,
} from '../../kernel/ports/transport.js'
import type { TransportOptions } from '../../kernel/ports/transport-options.js'
import { checkPort } from './addresses.js'
import type { Connection } from './connection.js'
import { connectionLimit } from './connection-limit.js'
import { Connections } from './connections.js'
import { SinkCalls } from './sink-calls.js'
import type { RefusedCounts } from './upgrade/pending.js'
import { rejectionOf } from './upgrade/rejection.js'

/** RFC 6455 §7.4.1: an endpoint goes away. */
const GOING_AWAY = 1001

type Sent = Pick<TransportStats, 'deliveredCount' | 'sentByteCount' | 'conflatedCount' | 'droppedCount'>

/**
 * A transport over a library of Node: one thread, the event loop. Connections, groups and the calls of the sink are here;
 * a library adds how it listens, accepts and ends.
 */
export abstract class EventLoopTransport<Frame, Member extends Connection<Frame, unknown>> implements Transport {
  abstract readonly name: string
  abstract readonly capabilities: TransportCapabilities
  protected readonly options: TransportOptions
  protected readonly connections = new Connections<Member>()
  protected calls: SinkCalls | undefined
  readonly #maxConnections: number
  #isStarted = false
  #stopped: Promise<void> | undefined

  constructor(options: TransportOptions) {
    this.options = options
    this.#maxConnections = connectionLimit(options.maxConnections)
  }

  protected abstract listen(calls: SinkCalls): Promise<TransportAddress>
  /** Copies `data`; the caller may reuse the bytes afterwards. */
  protected abstract createFrame(data: FrameData, isBinary: boolean): Frame
  /** @throws {WebMQError} `E_OPTION_INVALID`; the upgrade stays pending. */
  protected abstract open(upgrade: UpgradeId, options: AcceptOptions): void
  /** @throws {WebMQError} `E_OPTION_INVALID`; the upgrade stays pending. */
  protected abstract refuse(upgrade: UpgradeId, rejection: Rejection): void
  protected abstract refuseAll(rejection: Rejection): void
  /** The own part of {@link stop}, once all connections are being closed. */
  protected abstract end(limitMs: number | undefined): Promise<void>
  protected abstract refused(): RefusedCounts
  protected abstract sent(): Sent

  abstract attach(server: Server, sink: TransportSink, path?: string): () => void
  abstract stopAccepting(): Promise<void>

  protected get isStopped(): boolean {
    return this.#stopped !== undefined
  }

  /** Whether another connection exceeds the limit. */
  protected readonly isFull = (pendingCount: number): boolean =>
    this.isStopped || this.connections.open.size + pendingCount >= this.#maxConnections

  async start(sink: TransportSink): Promise<TransportAddress> {
    if (this.#isStarted || this.isStopped) {
      throw new WebMQError('E_TRANSPORT_FAILED', { detail: 'a transport is started once' })
    }
    this.#isStarted = true
    try {
      checkPort(this.options.port)
      return await this.listen(this.run(sink))
    } catch (error) {
      this.#isStarted = false
      throw error
    }
  }

  accept(upgrade: UpgradeId, options: AcceptOptions = {}): void {
    this.#decide(upgrade, () => this.open(upgrade, options))
  }

  reject(upgrade: UpgradeId, rejection: Rejection): void {
    this.#decide(upgrade, () => this.refuse(upgrade, rejection))
  }

  join(id: ConnectionId, group: GroupId): void {
    const connection = this.connections.get(id)
    if (connection !== undefined) this.enter(connection, group)
  }

  leave(id: ConnectionId, group: GroupId): void {
    const connection = this.connections.get(id)
    if (connection !== undefined) this.exit(connection, group)
  }

  setOverflow(group: GroupId, overflow: GroupOverflow | undefined): void {
    this.connections.setOverflow(group, overflow)
  }

  multicast(
    groups: readonly GroupId[],
    data: FrameData,
    isBinary: boolean,
    except?: ConnectionId,
    topic?: number,
  ): void {
    if (this.connections.hasMembers(groups)) this.deliver(groups, this.createFrame(data, isBinary), except, topic)
  }

  send(id: ConnectionId, data: FrameData, isBinary: boolean): void {
    this.connections.get(id)?.send(this.createFrame(data, isBinary))
  }

  notifyDrained(id: ConnectionId, level: OutboxLevel): void {
    this.connections.get(id)?.notifyDrained(level)
  }

  pause(id: ConnectionId): void {
    this.connections.get(id)?.pause()
  }

  resume(id: ConnectionId): void {
    this.connections.get(id)?.resume()
  }

  close(id: ConnectionId, code: number, reason: string): void {
    this.connections.get(id)?.close(code, reason)
  }

  /** Cost: O(connections). Bytes that several connections wait for count once per receiver. */
  stats(): TransportStats {
    return {
      ...this.connections.stats(),
      ...this.sent(),
      ...this.refused(),
      connectionLimit: this.#maxConnections,
      proxyHeaderRefusedCount: 0,
      receivedMessageCount: this.calls?.messageCount ?? 0,
      receivedByteCount: this.calls?.byteCount ?? 0,
      answeredMessageCount: 0,
      restartedThreadCount: 0,
    }
  }

  stop(limitMs?: number): Promise<void> {
    this.#stopped ??= this.#end(limitMs)
    return this.#stopped
  }

  protected enter(connection: Member, group: GroupId): void {
    this.connections.join(connection, group)
  }

  protected exit(connection: Member, group: GroupId): void {
    this.connections.leave(connection, group)
  }

  /** Sends to the members of groups, of which there is one. */
  protected deliver(groups: readonly GroupId[], frame: Frame, except?: ConnectionId, topic?: number): void {
    this.connections.multicast(groups, except, topic, (connection, droppable) => connection.send(frame, droppable))
  }

  protected run(sink: TransportSink): SinkCalls {
    if (this.isStopped) throw new WebMQError('E_NOT_RUNNING')
    if (this.calls !== undefined && !this.calls.isOf(sink)) {
      throw new WebMQError('E_OPTION_INVALID', { detail: 'a transport has one sink' })
    }
    this.calls ??= new SinkCalls(sink, (id) => this.connections.get(id)?.fail(), this.later)
    return this.calls
  }

  /** Runs a call of the sink in order, before the next callback of the library. */
  protected later(call: () => void): void {
    queueMicrotask(call)
  }

  async #end(limitMs?: number): Promise<void> {
    await this.stopAccepting()
    this.refuseAll(rejectionOf('E_DRAIN', { status: 503 }))
    for (const connection of this.connections.values()) connection.close(GOING_AWAY, 'server stops')
    await this.end(limitMs)
    await this.calls?.settled()
  }

  /** A decision that cannot be written is a bug of the caller; the client gets a 500. */
  #decide(upgrade: UpgradeId, decide: () => void): void {
    try {
      decide()
    } catch (error) {
      this.calls?.fail(error)
      this.refuse(upgrade, rejectionOf('E_INTERNAL', { status: 500 }))
    }
  }
}
