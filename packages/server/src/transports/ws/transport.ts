import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebMQError } from 'webmq-client/protocol'
import { within } from '../../base/within.js'
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
  TransportSink,
  TransportStats,
  UpgradeId,
} from '../../ports/transport.js'
import type { TlsCertificate, TransportOptions } from '../../ports/transport-options.js'
import { connectionLimit } from '../connection-limit.js'
import { type AnyConnection, Connections } from '../connections.js'
import { isStreamId } from '../response-body/requests.js'
import { EventStreams } from '../response-body/sse.js'
import { SinkCalls } from '../sink-calls.js'
import { isToken } from '../upgrade/handshake.js'
import { checkHeaders, rejectionOf } from '../upgrade/rejection.js'
import { takeUpgrades } from '../upgrade/take-upgrades.js'
import { answerRequest } from './answer-request.js'
import { WsFrame } from './frame.js'
import { WsListener } from './listener.js'
import { WsUpgrades } from './upgrades.js'
import { WebSockets } from './websockets.js'

/** RFC 6455 §7.4.1: an endpoint goes away. */
const GOING_AWAY = 1001

/**
 * The transport over the library `ws`: for every platform. One thread, the event loop.
 *
 * `ws` does the handshake, reads frames, answers pings and closes. Messages are written here: each is encoded and
 * compressed once for all receivers, and a connection gets all messages of a turn in one write.
 *
 * Differences from the port:
 * - A violation is closed without a reason, and data that is no DEFLATE with 1007.
 * - It does not read the PROXY protocol.
 * - Bytes that the kernel has taken of an incomplete write still count as waiting, up to 128 KiB or one message.
 */
export function createWsTransport(options: TransportOptions): Transport {
  return new WsTransport(options)
}

class WsTransport implements Transport {
  readonly name = 'ws'
  readonly capabilities = {
    tls: true,
    tlsReload: true,
    attach: true,
    threads: false,
    compression: true,
    pause: true,
    sse: true,
    proxyProtocol: false,
    overflow: true,
    answers: false,
  }

  readonly #options: TransportOptions
  readonly #connections = new Connections<AnyConnection<WsFrame>>()
  readonly #websockets: WebSockets
  readonly #upgrades: WsUpgrades
  readonly #streams: EventStreams
  readonly #detachers = new Set<() => void>()
  #listener: WsListener | undefined
  #calls: SinkCalls | undefined
  #isStarted = false
  #stopped: Promise<void> | undefined

  constructor(options: TransportOptions) {
    this.#options = options
    const { maxHeaderBytes, handshakeTimeoutMs, compression } = options
    const calls = () => this.#calls
    this.#websockets = new WebSockets(options, this.#connections, calls)
    const maxConnections = connectionLimit(options.maxConnections)
    const isFull = (pendingCount: number) =>
      this.#stopped !== undefined || this.#connections.open.size + pendingCount >= maxConnections
    const hasCompression = compression !== undefined
    this.#upgrades = new WsUpgrades({ handshakeTimeoutMs, maxHeaderBytes, hasCompression, isFull })
    this.#streams = new EventStreams(options, this.#connections, { calls, isFull })
  }

  async start(sink: TransportSink): Promise<TransportAddress> {
    if (this.#isStarted || this.#stopped !== undefined) {
      throw new WebMQError('E_TRANSPORT_FAILED', { detail: 'a transport is started once' })
    }
    this.#isStarted = true
    try {
      const calls = this.#run(sink)
      const listener = new WsListener(this.#options, {
        upgrade: this.#onUpgrade,
        stream: this.#streams.handle,
        request: (request, response) => {
          this.#upgrades.countRefusal()
          answerRequest(request, response)
        },
        failed: (error) => calls.fail(error),
      })
      this.#listener = listener
      return await listener.listen(this.#options.host, this.#options.port)
    } catch (error) {
      this.#isStarted = false
      this.#listener = undefined
      throw error
    }
  }

  attach(server: Server, sink: TransportSink, path?: string): () => void {
    this.#run(sink)
    const stopTaking = takeUpgrades(server, path, this.#onUpgrade)
    const detach = () => {
      stopTaking()
      this.#detachers.delete(detach)
    }
    this.#detachers.add(detach)
    return detach
  }

  setCertificates(certificates: readonly TlsCertificate[]): void {
    this.#listener?.setCertificates(certificates)
  }

  accept(upgrade: UpgradeId, options: AcceptOptions = {}): void {
    this.#decide(upgrade, () => {
      checkHeaders(options.headers)
      if (isStreamId(upgrade)) return this.#streams.accept(upgrade, options)
      if (options.subprotocol !== undefined && !isToken(options.subprotocol)) {
        const detail = `subprotocol ${JSON.stringify(options.subprotocol)} is not a token`
        throw new WebMQError('E_OPTION_INVALID', { detail })
      }
      const pending = this.#upgrades.take(upgrade)
      if (pending !== undefined) this.#websockets.accept(upgrade, pending, options)
    })
  }

  reject(upgrade: UpgradeId, rejection: Rejection): void {
    this.#decide(upgrade, () => this.#requestsOf(upgrade).reject(upgrade, rejection))
  }

  join(id: ConnectionId, group: GroupId): void {
    const connection = this.#connections.get(id)
    if (connection !== undefined) this.#connections.groups.join(connection, group)
  }

  setOverflow(group: GroupId, overflow: GroupOverflow | undefined): void {
    this.#connections.setOverflow(group, overflow)
  }

  leave(id: ConnectionId, group: GroupId): void {
    const connection = this.#connections.get(id)
    if (connection !== undefined) this.#connections.groups.leave(connection, group)
  }

  multicast(
    groups: readonly GroupId[],
    data: FrameData,
    isBinary: boolean,
    except?: ConnectionId,
    topic?: number,
  ): void {
    if (!this.#connections.groups.hasMembers(groups)) return
    const frame = new WsFrame(data, isBinary)
    this.#connections.multicast(groups, except, topic, (connection, droppable) => connection.send(frame, droppable))
  }

  send(id: ConnectionId, data: FrameData, isBinary: boolean): void {
    this.#connections.get(id)?.send(new WsFrame(data, isBinary))
  }

  notifyDrained(id: ConnectionId, level: OutboxLevel): void {
    this.#connections.get(id)?.notifyDrained(level)
  }

  pause(id: ConnectionId): void {
    this.#connections.get(id)?.pause()
  }

  resume(id: ConnectionId): void {
    this.#connections.get(id)?.resume()
  }

  close(id: ConnectionId, code: number, reason: string): void {
    this.#connections.get(id)?.close(code, reason)
  }

  /** Cost: O(connections). Shared bytes count once per receiver. */
  stats(): TransportStats {
    const [sent, streamed] = [this.#websockets.outboxStats(), this.#streams.outboxStats()]
    let partialBytes = 0
    for (const connection of this.#connections.open) partialBytes += connection.partialBytes
    return {
      ...this.#connections.stats(),
      ...sent,
      deliveredCount: sent.deliveredCount + streamed.deliveredCount,
      sentByteCount: sent.sentByteCount + streamed.sentByteCount,
      refusedCount: this.#upgrades.refusedCount + this.#streams.refusedCount,
      proxyHeaderRefusedCount: 0,
      receivedMessageCount: this.#calls?.messageCount ?? 0,
      receivedByteCount: this.#calls?.byteCount ?? 0,
      partialBytes,
      answeredMessageCount: 0,
      restartedThreadCount: 0,
    }
  }

  async stopAccepting(): Promise<void> {
    for (const detach of this.#detachers) detach()
    this.#listener?.close()
  }

  stop(limitMs?: number): Promise<void> {
    this.#stopped ??= this.#end(limitMs)
    return this.#stopped
  }

  async #end(limitMs?: number): Promise<void> {
    await this.stopAccepting()
    this.#upgrades.rejectAll(rejectionOf('E_DRAIN', { status: 503 }))
    this.#streams.stop()
    for (const connection of this.#connections.values()) connection.close(GOING_AWAY, 'server stops')
    const ended = this.#connections.empty()
    if (limitMs !== undefined && !(await within(ended, limitMs))) {
      for (const connection of this.#connections.open) connection.destroy()
    }
    await ended
    this.#websockets.stop()
    this.#listener?.destroyConnections()
    await this.#calls?.settled()
  }

  /** Takes the sink, and starts the timers on the first call. */
  #run(sink: TransportSink): SinkCalls {
    if (this.#stopped !== undefined) throw new WebMQError('E_NOT_RUNNING')
    if (this.#calls !== undefined && !this.#calls.isOf(sink)) {
      throw new WebMQError('E_OPTION_INVALID', { detail: 'a transport has one sink' })
    }
    // As streams do, so that no data of a connection comes before its `open`.
    const later = (call: () => void) => process.nextTick(call)
    this.#calls ??= new SinkCalls(sink, (id) => this.#connections.get(id)?.fail(), later)
    this.#websockets.start()
    return this.#calls
  }

  readonly #onUpgrade = (request: IncomingMessage, socket: Duplex, rest: Buffer): void => {
    const upgrade = this.#upgrades.receive(request, socket, rest)
    if (upgrade === undefined || this.#calls?.upgrade(upgrade) === true) return
    this.#upgrades.reject(upgrade.id, rejectionOf('E_INTERNAL', { status: 500 }))
  }

  /** A decision that cannot be written is a bug of the caller; the client gets a 500. */
  #decide(upgrade: UpgradeId, decide: () => void): void {
    try {
      decide()
    } catch (error) {
      this.#calls?.fail(error)
      this.#requestsOf(upgrade).reject(upgrade, rejectionOf('E_INTERNAL', { status: 500 }))
    }
  }

  #requestsOf(upgrade: UpgradeId): Pick<WsUpgrades, 'reject'> {
    return isStreamId(upgrade) ? this.#streams : this.#upgrades
  }
}
