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
  TransportOptions,
  TransportSink,
  TransportStats,
  UpgradeId,
} from 'webmq-server/ports'
import { Connections, connectionLimit, rejectionOf, SinkCalls } from 'webmq-server/transports'
import { uwsBehavior } from './behavior.js'
import { UwsConnection } from './connection.js'
import { UwsHttp } from './http.js'
import { listen } from './listen.js'
import { loadUws, type UwsApp, type UwsBehavior, type UwsModule } from './module.js'
import { createSslApp } from './ssl-app.js'
import { TOPIC_MEMBERS } from './topics.js'
import { UwsUpgrades } from './upgrades.js'
import { createFrame, UwsWebSockets } from './websockets.js'

/** RFC 6455 §7.4.1: an endpoint goes away. */
const GOING_AWAY = 1001

/**
 * The transport over uWebSockets.js: for TLS inside the process and for platforms without the native engine. One
 * thread.
 *
 * uWebSockets.js limits how well this transport can follow the port:
 * - A connection without a complete request head is dropped after 8 to 12 s, regardless of `handshakeTimeoutMs`, which
 *   counts from the complete head.
 * - After a close frame is sent, input of the client is ignored. `closed` follows at once with the sent code, and the
 *   client has 4 to 8 s to read the queue, regardless of `closeTimeoutMs`. So `stop` waits for nobody.
 * - A partly sent message has no time limit: `messageTimeoutMs` is ignored.
 * - A malformed frame, or a message of more than four times `maxMessageBytes`, ends the TCP connection without a close
 *   frame. The client sees 1006, the sink the proper code.
 * - A head that arrives in several parts may have 4 KiB, and any head at most 50 headers. Older releases answer 505
 *   when the request line arrives in parts.
 * - A frame without a mask is read as if it had one. The client's close codes 1012-1014 and 3000-3999 become 1006.
 * - `remotePort` is 0 in releases that do not provide it.
 * - A message is compressed once per receiver, even if it becomes larger. Bytes are counted before and after
 *   compression. Offers with `server_max_window_bits` are declined, because the answer could not contain it. Invalid
 *   DEFLATE data looks like a too large message, so the sink sees 1009 for both. A final block (BFINAL) counts as an
 *   error.
 * - There are no event streams: a response that nothing is written to for 10 s is dropped, and what waits for one cannot be
 *   counted.
 * - Over TLS it names no protocol (ALPN), and finds the certificate of a server name only if that is in lower case.
 *   Certificates cannot be replaced while it runs.
 * - A header of the PROXY protocol is read only behind TLS, from everyone, and its absence cannot be told from a
 *   connection of the proxy itself. So the option is refused.
 *
 * @param importModule Replaceable for tests.
 * @param topicMembers Replaceable for tests, too: members from which on a group has a topic.
 */
export function createUwsTransport(
  options: TransportOptions,
  importModule?: () => Promise<unknown>,
  topicMembers = TOPIC_MEMBERS,
): Transport {
  return new UwsTransport(options, () => loadUws(importModule), topicMembers)
}

class UwsTransport implements Transport {
  readonly name = 'uws'
  readonly capabilities = {
    tls: true,
    tlsReload: false,
    attach: false,
    threads: false,
    compression: true,
    pause: false,
    sse: false,
    proxyProtocol: false,
    overflow: true,
    answers: false,
  }

  readonly #options: TransportOptions
  readonly #load: () => Promise<UwsModule>
  readonly #connections = new Connections<UwsConnection>()
  readonly #websockets: UwsWebSockets
  #app: UwsApp | undefined
  readonly #upgrades: UwsUpgrades
  readonly #http: UwsHttp
  #sink: SinkCalls | undefined
  #closeListener: (() => void) | undefined
  #isStopped = false

  constructor(options: TransportOptions, load: () => Promise<UwsModule>, topicMembers: number) {
    this.#options = options
    this.#load = load
    const { maxHeaderBytes, handshakeTimeoutMs, httpServer } = options
    this.#websockets = new UwsWebSockets(options, this.#connections, () => this.#sink, topicMembers)
    const maxConnections = connectionLimit(options.maxConnections)
    const isFull = (pendingCount: number) =>
      this.#isStopped || this.#connections.open.size + pendingCount >= maxConnections
    const hasCompression = options.compression !== undefined
    this.#upgrades = new UwsUpgrades({ handshakeTimeoutMs, maxHeaderBytes, hasCompression, isFull })
    this.#http = new UwsHttp({ httpServer, maxHeaderBytes, isEncrypted: options.tls !== undefined })
  }

  async start(sink: TransportSink): Promise<TransportAddress> {
    if (this.#sink !== undefined || this.#isStopped) {
      throw new WebMQError('E_TRANSPORT_FAILED', { detail: 'a transport is started once' })
    }
    const { host, port } = this.#options
    if (!Number.isInteger(port) || port < 0 || port > 65_535) {
      throw new WebMQError('E_OPTION_INVALID', { detail: `port ${port} is not between 0 and 65535` })
    }
    const calls = new SinkCalls(sink, (id) => {
      const connection = this.#connections.get(id)
      if (connection !== undefined) this.#websockets.drop(connection, 'E_INTERNAL')
    })
    this.#sink = calls
    try {
      const module = await this.#load()
      const app = this.#createApp(module, calls)
      this.#app = app
      const { socket, address } = await listen(app, module, host, port)
      this.#closeListener = () => module.us_listen_socket_close(socket)
      if (this.#isStopped) await this.stopAccepting()
      else this.#websockets.keepalive.start()
      return address
    } catch (error) {
      this.#sink = undefined
      throw error
    }
  }

  attach(_server: Server, _sink: TransportSink): () => void {
    throw new WebMQError('E_UNSUPPORTED', { detail: 'the uws transport cannot take upgrades of another server' })
  }

  accept(upgrade: UpgradeId, options: AcceptOptions = {}): void {
    const connection = new UwsConnection((this.#connections.acceptedCount + 1) as ConnectionId, upgrade)
    this.#decide(upgrade, () => {
      if (this.#upgrades.accept(upgrade, { connection }, options)) this.#connections.acceptedCount++
    })
  }

  reject(upgrade: UpgradeId, rejection: Rejection): void {
    this.#decide(upgrade, () => this.#upgrades.reject(upgrade, rejection))
  }

  join(id: ConnectionId, group: GroupId): void {
    const connection = this.#connections.get(id)
    if (connection !== undefined) this.#websockets.join(connection, group)
  }

  setOverflow(group: GroupId, overflow: GroupOverflow | undefined): void {
    this.#connections.setOverflow(group, overflow)
  }

  leave(id: ConnectionId, group: GroupId): void {
    const connection = this.#connections.get(id)
    if (connection !== undefined) this.#websockets.leave(connection, group)
  }

  multicast(
    groups: readonly GroupId[],
    data: FrameData,
    isBinary: boolean,
    except?: ConnectionId,
    topic?: number,
  ): void {
    if (!this.#connections.groups.hasMembers(groups)) return
    this.#websockets.multicast(this.#app, groups, createFrame(data, isBinary), except, topic)
  }

  send(id: ConnectionId, data: FrameData, isBinary: boolean): void {
    const connection = this.#connections.get(id)
    if (connection !== undefined) this.#websockets.outbox.push(connection, createFrame(data, isBinary))
  }

  notifyDrained(id: ConnectionId, level: OutboxLevel): void {
    const connection = this.#connections.get(id)
    if (connection !== undefined) this.#websockets.outbox.await(connection, level)
  }

  pause(_id: ConnectionId): void {
    // uWebSockets.js cannot stop reading from one connection.
  }

  resume(_id: ConnectionId): void {
    // Nothing is paused.
  }

  close(id: ConnectionId, code: number, reason: string): void {
    const connection = this.#connections.get(id)
    if (connection !== undefined) this.#websockets.close(connection, code, reason)
  }

  /** Cost: O(connections). uWebSockets.js copies waiting data, so shared bytes count once per receiver. */
  stats(): TransportStats {
    return {
      ...this.#connections.stats(),
      ...this.#websockets.outbox.stats(),
      refusedCount: this.#upgrades.refusedCount,
      proxyHeaderRefusedCount: 0,
      receivedMessageCount: this.#sink?.messageCount ?? 0,
      receivedByteCount: this.#sink?.byteCount ?? 0,
      partialBytes: 0,
      answeredMessageCount: 0,
      restartedThreadCount: 0,
    }
  }

  async stopAccepting(): Promise<void> {
    this.#closeListener?.()
    this.#closeListener = undefined
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.stopAccepting()
    this.#websockets.keepalive.stop()
    this.#upgrades.rejectAll(rejectionOf('E_DRAIN', { status: 503 }))
    for (const connection of this.#connections.values()) this.#websockets.close(connection, GOING_AWAY, 'server stops')
    this.#http.close()
    await this.#sink?.settled()
  }

  #createApp(module: UwsModule, calls: SinkCalls): UwsApp {
    const { tls } = this.#options
    const behavior = this.#createBehavior(module, calls)
    const route = (app: UwsApp) =>
      app.ws('/*', behavior).any('/*', (response, request) => this.#http.handle(response, request))
    return tls === undefined ? route(module.App()) : createSslApp(module, tls, route)
  }

  #createBehavior(module: UwsModule, calls: SinkCalls): UwsBehavior<UwsConnection> {
    return uwsBehavior(this.#options, module, {
      upgrade: (head, response, context) => {
        const request = this.#upgrades.receive(head, response, context)
        if (request === undefined) return
        if (!calls.upgrade(request)) this.#upgrades.reject(request.id, rejectionOf('E_INTERNAL', { status: 500 }))
      },
      open: (connection) => this.#websockets.opened(connection),
      alive: (connection) => this.#websockets.keepalive.alive(connection),
      message: (connection, data, isBinary) => this.#websockets.received(connection, data, isBinary),
      drained: (connection) => this.#websockets.outbox.drained(connection),
      closed: (connection, code, reason) => this.#websockets.closed(connection, code, reason),
    })
  }

  /** A decision that cannot be written is a bug of the caller; the client gets a 500. */
  #decide(upgrade: UpgradeId, decide: () => void): void {
    try {
      decide()
    } catch (error) {
      this.#sink?.fail(error)
      this.#upgrades.reject(upgrade, rejectionOf('E_INTERNAL', { status: 500 }))
    }
  }
}
