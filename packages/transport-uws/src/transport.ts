import type { Server } from 'node:http'
import { WebMQError } from 'webmq-client/protocol'
import {
  type AcceptOptions,
  type ConnectionId,
  copyFrame,
  type FrameData,
  type GroupId,
  type Rejection,
  type Transport,
  type TransportAddress,
  type TransportOptions,
  type TransportSink,
  type UpgradeId,
} from 'webmq-server/ports'
import { EventLoopTransport, PendingUpgrades } from 'webmq-server/transports'
import { uwsBehavior } from './behavior.js'
import { UwsConnection, type UwsFrame } from './connection.js'
import { UwsHttp } from './http.js'
import { listen } from './listen.js'
import { loadUws, type UwsApp, type UwsModule } from './module.js'
import { writeRejection } from './response.js'
import { createSslApp } from './ssl-app.js'
import { TOPIC_MEMBERS } from './topics.js'
import { answerUpgrade, type UwsUpgrade } from './upgrade.js'
import { UwsWebSockets } from './websockets.js'

/**
 * The transport over uWebSockets.js: for TLS inside the process and for platforms without the native engine. One
 * thread.
 *
 * uWebSockets.js limits how well this transport can follow the port:
 * - A connection without a complete request head is dropped after 8 to 12 s, regardless of `handshakeTimeoutMs`, which
 *   counts from the complete head.
 * - After a close frame is sent, input of the client is ignored. `closed` follows at once with the sent code, and the
 *   client has 4 to 8 s to read the queue, regardless of `closeTimeoutMs`. So `stop` waits for nobody.
 * - A peer that reads slowly has `pingTimeoutMs` for what the kernel has taken, some megabytes: only before that is its progress seen.
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

class UwsTransport extends EventLoopTransport<UwsFrame, UwsConnection> {
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
    unixSocket: true,
    answers: false,
  }

  readonly #load: () => Promise<UwsModule>
  readonly #websockets: UwsWebSockets
  readonly #upgrades: PendingUpgrades<UwsUpgrade>
  readonly #http: UwsHttp
  #app: UwsApp | undefined
  #closeListener: (() => void) | undefined

  constructor(options: TransportOptions, load: () => Promise<UwsModule>, topicMembers: number) {
    super(options)
    const { host, maxHeaderBytes, httpServer, tls } = options
    const calls = () => this.calls
    this.#load = load
    this.#websockets = new UwsWebSockets(options, this.connections, calls, topicMembers)
    this.#upgrades = new PendingUpgrades(options, {
      calls,
      isFull: this.isFull,
      answer: ({ response }, rejection) => writeRejection(response, rejection),
      waits: ({ response }, gone) => void response.onAborted(gone),
    })
    this.#http = new UwsHttp({ host, maxHeaderBytes, httpServer, isEncrypted: tls !== undefined })
  }

  attach(_server: Server, _sink: TransportSink): () => void {
    throw new WebMQError('E_UNSUPPORTED', { detail: 'the uws transport cannot take upgrades of another server' })
  }

  async stopAccepting(): Promise<void> {
    this.#closeListener?.()
    this.#closeListener = undefined
  }

  protected async listen(): Promise<TransportAddress> {
    const { host, port } = this.options
    const module = await this.#load()
    const app = this.#createApp(module)
    this.#app = app
    const { socket, address } = await listen(app, module, host, port)
    this.#closeListener = () => module.us_listen_socket_close(socket)
    if (this.isStopped) await this.stopAccepting()
    else this.#websockets.keepalive.start()
    return address
  }

  protected createFrame(data: FrameData, isBinary: boolean): UwsFrame {
    return { data: copyFrame(data), isBinary: isBinary && typeof data !== 'string' }
  }

  protected open(upgrade: UpgradeId, options: AcceptOptions): void {
    const held = this.#upgrades.accept(upgrade, options)
    if (held === undefined) return
    const id = ++this.connections.acceptedCount as ConnectionId
    const connection = new UwsConnection(this.#websockets, id, upgrade)
    answerUpgrade(held, { connection }, options, this.options.compression !== undefined)
  }

  protected refuse(upgrade: UpgradeId, rejection: Rejection): void {
    this.#upgrades.reject(upgrade, rejection)
  }

  protected refuseAll(rejection: Rejection): void {
    this.#upgrades.rejectAll(rejection)
  }

  protected refused() {
    return this.#upgrades.refused
  }

  protected sent() {
    return this.#websockets.outbox.stats()
  }

  protected async end(): Promise<void> {
    this.#websockets.keepalive.stop()
    this.#http.close()
  }

  protected override enter(connection: UwsConnection, group: GroupId): void {
    this.#websockets.join(connection, group)
  }

  protected override exit(connection: UwsConnection, group: GroupId): void {
    this.#websockets.leave(connection, group)
  }

  protected override deliver(
    groups: readonly GroupId[],
    frame: UwsFrame,
    except: ConnectionId | undefined,
    topic: number | undefined,
  ): void {
    if (this.#app !== undefined && this.#websockets.publish(this.#app, groups, frame, except, topic)) return
    super.deliver(groups, frame, except, topic)
  }

  #createApp(module: UwsModule): UwsApp {
    const { tls } = this.options
    const behavior = uwsBehavior(this.options, module, {
      upgrade: (head, response, context) => this.#upgrades.receive(head, { head, response, context }),
      open: (connection) => this.#websockets.opened(connection),
      alive: (connection) => this.#websockets.keepalive.alive(connection),
      answered: (connection) => this.#websockets.outbox.checkWritten(connection),
      message: (connection, data, isBinary) => this.#websockets.received(connection, data, isBinary),
      drained: (connection) => this.#websockets.drained(connection),
      closed: (connection, code, reason) => this.#websockets.closed(connection, code, reason),
    })
    const route = (app: UwsApp) =>
      app.ws('/*', behavior).any('/*', (response, request) => this.#http.handle(response, request))
    return tls === undefined ? route(module.App()) : createSslApp(module, tls, route)
  }
}
