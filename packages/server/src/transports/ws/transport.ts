import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { ERRORS, WebMQError } from 'webmq-client/protocol'
import { type ServerOptions, WebSocketServer } from 'ws'
import type {
  AcceptOptions,
  ConnectionId,
  FrameData,
  GroupId,
  GroupOverflow,
  OutboxLevel,
  Rejection,
  TlsCertificate,
  Transport,
  TransportAddress,
  TransportOptions,
  TransportSink,
  TransportStats,
  UpgradeId,
} from '../../ports/transport.js'
import { within } from '../../ports/within.js'
import { connectionLimit } from '../connection-limit.js'
import { Groups } from '../groups.js'
import { Keepalive } from '../keepalive.js'
import { type Droppable, Overflows } from '../overflows.js'
import { isStreamId } from '../response-body/requests.js'
import { EventStreams } from '../response-body/sse.js'
import { SinkCalls } from '../sink-calls.js'
import { isToken } from '../upgrade/handshake.js'
import { checkHeaders, rejectionOf } from '../upgrade/rejection.js'
import { takeUpgrades } from '../upgrade/take-upgrades.js'
import { answerRequest } from './answer-request.js'
import { closeCodeOf } from './close-codes.js'
import { WsConnection } from './connection.js'
import { WsFrame } from './frame.js'
import { WsListener } from './listener.js'
import { WsOutbox } from './outbox.js'
import { WsReading } from './reading.js'
import { type PendingUpgrade, WsUpgrades } from './upgrades.js'

/** RFC 6455 §7.4.1: an endpoint goes away. */
const GOING_AWAY = 1001
const OPEN = 1

/** Why the transport itself closes a connection. */
type OwnReason = 'E_SLOW_CONSUMER' | 'E_HEARTBEAT_TIMEOUT' | 'E_MESSAGE_TIMEOUT' | 'E_INTERNAL'

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
  readonly #server: WebSocketServer
  /** Connections that the sink knows. */
  readonly #connections = new Map<ConnectionId, WsConnection>()
  /** Those, and the ones that still send what is queued or wait for the peer. */
  readonly #open = new Set<WsConnection>()
  readonly #groups = new Groups<WsConnection>()
  readonly #overflows = new Overflows()
  readonly #outbox: WsOutbox
  readonly #keepalive: Keepalive<WsConnection>
  readonly #reading: WsReading
  readonly #upgrades: WsUpgrades
  readonly #streams: EventStreams
  readonly #detachers = new Set<() => void>()
  /** How the upgrade that `ws` answers right now is accepted. */
  #accepting: AcceptOptions = {}
  #listener: WsListener | undefined
  #calls: SinkCalls | undefined
  #isStarted = false
  #stopped: Promise<void> | undefined
  #allEnded: (() => void) | undefined
  #acceptedCount = 0
  #closedCount = 0
  #slowConsumerCount = 0

  constructor(options: TransportOptions) {
    this.#options = options
    const { maxOutboxBytes, maxHeaderBytes, handshakeTimeoutMs, messageTimeoutMs, compression } = options
    this.#server = this.#createServer()
    this.#outbox = new WsOutbox(
      { maxOutboxBytes, compressFromBytes: compression?.thresholdBytes ?? Number.POSITIVE_INFINITY },
      {
        overflow: (connection) => {
          this.#slowConsumerCount++
          this.#drop(connection, 'E_SLOW_CONSUMER')
        },
        drained: (connection) => this.#calls?.drained(connection.id),
      },
    )
    this.#keepalive = new Keepalive(options, this.#connections, {
      ping: ({ websocket }) => websocket.ping(),
      silent: (connection) => this.#drop(connection, 'E_HEARTBEAT_TIMEOUT'),
    })
    this.#reading = new WsReading(messageTimeoutMs, this.#connections, (connection) =>
      this.#drop(connection, 'E_MESSAGE_TIMEOUT'),
    )
    const maxConnections = connectionLimit(options.maxConnections)
    const isFull = (pendingCount: number) =>
      this.#stopped !== undefined || this.#open.size + this.#streams.size + pendingCount >= maxConnections
    const hasCompression = compression !== undefined
    this.#upgrades = new WsUpgrades({ handshakeTimeoutMs, maxHeaderBytes, hasCompression, isFull })
    this.#streams = new EventStreams(options, { calls: () => this.#calls, isFull, ended: () => this.#noteEnd() })
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
      if (pending !== undefined) this.#accept(upgrade, pending, options)
    })
  }

  reject(upgrade: UpgradeId, rejection: Rejection): void {
    this.#decide(upgrade, () => this.#requestsOf(upgrade).reject(upgrade, rejection))
  }

  join(id: ConnectionId, group: GroupId): void {
    const connection = this.#connections.get(id)
    if (connection !== undefined) this.#groups.join(connection, group)
    else this.#streams.join(id, group)
  }

  setOverflow(group: GroupId, overflow: GroupOverflow | undefined): void {
    this.#overflows.set(group, overflow)
  }

  leave(id: ConnectionId, group: GroupId): void {
    const connection = this.#connections.get(id)
    if (connection !== undefined) this.#groups.leave(connection, group)
    else this.#streams.leave(id, group)
  }

  multicast(
    groups: readonly GroupId[],
    data: FrameData,
    isBinary: boolean,
    except?: ConnectionId,
    topic?: number,
  ): void {
    if (this.#streams.size > 0) this.#streams.multicast(groups, data, except)
    if (!this.#groups.hasMembers(groups)) return
    const frame = new WsFrame(data, isBinary)
    const mayDrop = topic !== undefined && this.#overflows.hasAny(groups)
    this.#groups.forEachMember(groups, (connection) => {
      if (connection.id === except) return
      this.#push(connection, frame, mayDrop ? this.#overflows.droppable(connection.groups, groups, topic) : undefined)
    })
  }

  send(id: ConnectionId, data: FrameData, isBinary: boolean): void {
    const connection = this.#connections.get(id)
    if (connection !== undefined) this.#push(connection, new WsFrame(data, isBinary))
    else this.#streams.send(id, data)
  }

  notifyDrained(id: ConnectionId, level: OutboxLevel): void {
    const connection = this.#connections.get(id)
    if (connection !== undefined) this.#outbox.await(connection, level)
    else this.#streams.notifyDrained(id, level)
  }

  pause(id: ConnectionId): void {
    const connection = this.#connections.get(id)
    if (connection !== undefined && connection.closeCode === undefined) this.#reading.pause(connection)
  }

  resume(id: ConnectionId): void {
    const connection = this.#connections.get(id)
    if (connection?.isPaused !== true) return
    this.#reading.resume(connection)
    this.#keepalive.resumed(connection)
  }

  close(id: ConnectionId, code: number, reason: string): void {
    const connection = this.#connections.get(id)
    if (connection !== undefined) this.#close(connection, code, reason)
    else this.#streams.close(id, code, reason)
  }

  /** Cost: O(connections). Shared bytes count once per receiver. */
  stats(): TransportStats {
    const streams = this.#streams.stats()
    let { outboxBytes } = streams
    let partialBytes = 0
    for (const connection of this.#open) {
      outboxBytes += connection.outboxBytes
      if (!connection.isClosed) partialBytes += connection.boundaries.partialBytes
    }
    return {
      connections: this.#connections.size + streams.connections,
      acceptedCount: this.#acceptedCount + streams.acceptedCount,
      refusedCount: this.#upgrades.refusedCount + streams.refusedCount,
      closedCount: this.#closedCount + streams.closedCount,
      proxyHeaderRefusedCount: 0,
      slowConsumerCount: this.#slowConsumerCount + streams.slowConsumerCount,
      ...this.#outbox.leftOut,
      receivedMessageCount: this.#calls?.messageCount ?? 0,
      receivedByteCount: this.#calls?.byteCount ?? 0,
      deliveredCount: this.#outbox.deliveredCount + streams.deliveredCount,
      sentByteCount: this.#outbox.sentByteCount + streams.sentByteCount,
      partialBytes,
      answeredMessageCount: 0,
      restartedThreadCount: 0,
      outboxBytes,
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
    for (const connection of this.#connections.values()) this.#close(connection, GOING_AWAY, 'server stops')
    this.#streams.stop(GOING_AWAY, 'server stops')
    const ended = new Promise<void>((resolve) => {
      this.#allEnded = resolve
      this.#noteEnd()
    })
    if (limitMs !== undefined && !(await within(ended, limitMs))) {
      for (const { websocket } of this.#open) websocket.terminate()
      this.#streams.destroy()
    }
    await ended
    this.#keepalive.stop()
    this.#reading.stop()
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
    const onThrow = (id: ConnectionId) => {
      this.#drop(this.#connections.get(id), 'E_INTERNAL')
      this.#streams.fail(id)
    }
    this.#calls ??= new SinkCalls(sink, onThrow, later)
    this.#keepalive.start()
    this.#reading.start()
    return this.#calls
  }

  #createServer(): WebSocketServer {
    const { compression, maxMessageBytes, closeTimeoutMs } = this.#options
    // The types of `ws` do not have `closeTimeout` yet.
    const options: ServerOptions & { readonly closeTimeout: number } = {
      noServer: true,
      clientTracking: false,
      maxPayload: maxMessageBytes,
      closeTimeout: closeTimeoutMs,
      handleProtocols: () => this.#accepting.subprotocol ?? false,
      perMessageDeflate:
        compression === undefined ? false : { serverNoContextTakeover: true, clientNoContextTakeover: true },
    }
    const server = new WebSocketServer(options)
    server.on('headers', (lines: string[]) => {
      for (const [name, value] of Object.entries(this.#accepting.headers ?? {})) lines.push(`${name}: ${value}`)
    })
    return server
  }

  readonly #onUpgrade = (request: IncomingMessage, socket: Duplex, rest: Buffer): void => {
    const upgrade = this.#upgrades.receive(request, socket, rest)
    if (upgrade === undefined || this.#calls?.upgrade(upgrade) === true) return
    this.#upgrades.reject(upgrade.id, rejectionOf('E_INTERNAL', { status: 500 }))
  }

  #accept(upgrade: UpgradeId, { request, socket, rest }: PendingUpgrade, options: AcceptOptions): void {
    const id = ++this.#acceptedCount as ConnectionId
    // Before `ws` reads the socket: the first data comes in a later tick.
    this.#calls?.open(id, upgrade)
    this.#accepting = options
    let isOpen = false
    try {
      this.#server.handleUpgrade(request, socket, rest, (websocket) => {
        isOpen = true
        this.#listen(new WsConnection(id, upgrade, websocket, socket))
      })
    } finally {
      this.#accepting = {}
      // The client has left.
      if (!isOpen) {
        this.#closedCount++
        this.#calls?.closed(id, 1006, '')
      }
    }
  }

  #listen(connection: WsConnection): void {
    const { id, websocket, socket } = connection
    this.#connections.set(id, connection)
    this.#open.add(connection)
    this.#keepalive.alive(connection)
    const onData = (chunk: Buffer) => {
      this.#keepalive.alive(connection)
      this.#reading.received(connection, chunk)
      if (!connection.boundaries.hasClosed) return
      socket.off('data', onData)
      endAfterClose(connection)
    }
    socket.on('data', onData)
    websocket.on('message', (data, isBinary) => {
      if (connection.closeCode === undefined && !connection.isClosed) this.#calls?.message(id, data as Buffer, isBinary)
    })
    // `ws` has sent the close frame.
    websocket.on('error', (error) => this.#forget(connection, closeCodeOf(error), ''))
    websocket.on('close', (code, reason) => {
      this.#forget(connection, connection.closeCode ?? code, reason.toString())
      this.#outbox.clear(connection)
      this.#open.delete(connection)
      this.#noteEnd()
    })
  }

  #push(connection: WsConnection, frame: WsFrame, droppable?: Droppable): void {
    if (connection.closeCode === undefined) this.#outbox.push(connection, frame, droppable)
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

  #noteEnd(): void {
    if (this.#open.size + this.#streams.size === 0) this.#allEnded?.()
  }

  /** Closes a connection and does not wait for the peer. */
  #drop(connection: WsConnection | undefined, reason: OwnReason): void {
    if (connection === undefined || connection.closeCode !== undefined) return
    const code = ERRORS[reason].closeCode
    this.#close(connection, code, reason)
    // After the close frame.
    connection.socket.end()
    this.#forget(connection, code, reason)
  }

  #close(connection: WsConnection, code: number, reason: string): void {
    const { websocket } = connection
    if (connection.closeCode !== undefined || websocket.readyState !== OPEN) return
    connection.closeCode = code
    this.#outbox.release(connection)
    if (connection.isPaused) this.#reading.resume(connection)
    websocket.close(code, reason)
  }

  #forget(connection: WsConnection, code: number, reason: string): void {
    if (connection.isClosed) return
    connection.isClosed = true
    this.#groups.leaveAll(connection)
    this.#connections.delete(connection.id)
    this.#closedCount++
    this.#calls?.closed(connection.id, code, reason)
  }
}

/**
 * Ends the TCP connection when `ws` has ended its side, which it does after both close frames. RFC 6455 §7.1.1: the server
 * ends it first; `ws` alone waits for a peer that does not end its side.
 */
function endAfterClose({ socket }: WsConnection): void {
  if (socket.writableFinished) socket.destroy()
  else socket.once('finish', () => socket.destroy())
}
