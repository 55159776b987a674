import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { within } from '../../../kernel/base/within.js'
import type {
  AcceptOptions,
  FrameData,
  Rejection,
  Transport,
  TransportAddress,
  TransportSink,
  UpgradeId,
} from '../../../kernel/ports/transport.js'
import type { TlsCertificate, TransportOptions } from '../../../kernel/ports/transport-options.js'
import type { Connection } from '../connection.js'
import { EventLoopTransport } from '../event-loop-transport.js'
import { EventStreams, isStreamId } from '../response-body/sse.js'
import type { SinkCalls } from '../sink-calls.js'
import {
  acceptedExtensions,
  asksForWebSocket,
  findHandshakeFault,
  headOf,
  UPGRADE_REQUIRED,
} from '../upgrade/handshake.js'
import { PendingUpgrades, sumOfRefused } from '../upgrade/pending.js'
import { answerWith, refuse, rejectionOf } from '../upgrade/rejection.js'
import { takeLaterUpgrades, takeUpgrades } from '../upgrade/take-upgrades.js'
import { WsFrame } from './frame.js'
import { WsListener } from './listener.js'
import { type UpgradeSocket, WebSockets } from './websockets.js'

/**
 * The transport over the library `ws`: for every platform. One thread, the event loop.
 *
 * `ws` does the handshake, reads frames, answers pings and closes. Messages are written here: each is encoded and
 * compressed once for all receivers, and a connection gets all messages of a turn in one write.
 *
 * Differences from the port:
 * - A violation is closed without a reason, and data that is no DEFLATE with 1007.
 * - It does not read the PROXY protocol.
 * - A peer that pings and reads no pongs is ended without a close frame.
 * - Bytes that the kernel has taken of an incomplete write still count as waiting, up to 128 KiB or one message.
 * - A peer that reads slowly has `pingTimeoutMs` for each write of that size, and for what the kernel has taken.
 */
export function createWsTransport(options: TransportOptions): Transport {
  return new WsTransport(options)
}

type Member = Connection<WsFrame, unknown> & { destroy(): void }

class WsTransport extends EventLoopTransport<WsFrame, Member> {
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
    unixSocket: true,
    answers: false,
  }

  readonly #websockets: WebSockets
  readonly #upgrades: PendingUpgrades<UpgradeSocket>
  readonly #streams: EventStreams
  readonly #detachers = new Set<() => void>()
  #listener: WsListener | undefined

  constructor(options: TransportOptions) {
    super(options)
    const { isFull } = this
    const calls = () => this.calls
    this.#websockets = new WebSockets(options, this.connections, calls)
    this.#upgrades = new PendingUpgrades(options, {
      calls,
      isFull,
      answer: ({ socket }, rejection) => refuse(socket, rejection),
      // A reset of a connection that nobody reads.
      waits: ({ socket }) => void socket.on('error', destroy),
    })
    this.#streams = new EventStreams(options, this.connections, { calls, isFull })
    if (options.httpServer !== undefined) takeLaterUpgrades(options.httpServer, this.#onUpgrade)
  }

  attach(server: Server, sink: TransportSink, path?: string): () => void {
    this.run(sink)
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

  takeStream(request: IncomingMessage, response: ServerResponse): boolean {
    if (this.isStopped) return false
    this.#streams.handle(request, response)
    return true
  }

  async stopAccepting(): Promise<void> {
    for (const detach of this.#detachers) detach()
    this.#listener?.close()
  }

  protected async listen(calls: SinkCalls): Promise<TransportAddress> {
    const listener = new WsListener(this.options, {
      upgrade: this.#onUpgrade,
      stream: this.#streams.handle,
      request: (request, response) => {
        this.#upgrades.countRefusal()
        answerRequest(request, response)
      },
      failed: (error) => calls.fail(error),
    })
    this.#listener = listener
    try {
      return await listener.listen(this.options.host, this.options.port)
    } catch (error) {
      this.#listener = undefined
      throw error
    }
  }

  protected createFrame(data: FrameData, isBinary: boolean): WsFrame {
    return new WsFrame(data, isBinary)
  }

  protected open(upgrade: UpgradeId, options: AcceptOptions): void {
    if (isStreamId(upgrade)) {
      this.#streams.accept(upgrade, options)
      return
    }
    const held = this.#upgrades.accept(upgrade, options)
    held?.socket.off('error', destroy)
    if (held !== undefined) this.#websockets.accept(upgrade, held, options)
  }

  protected refuse(upgrade: UpgradeId, rejection: Rejection): void {
    const requests = isStreamId(upgrade) ? this.#streams : this.#upgrades
    requests.reject(upgrade, rejection)
  }

  protected refuseAll(rejection: Rejection): void {
    this.#upgrades.rejectAll(rejection)
    this.#streams.stop(rejection)
  }

  protected refused() {
    return sumOfRefused(this.#upgrades.refused, this.#streams.refused)
  }

  protected sent() {
    const [sent, streamed] = [this.#websockets.outboxStats(), this.#streams.outboxStats()]
    return {
      ...sent,
      deliveredCount: sent.deliveredCount + streamed.deliveredCount,
      sentByteCount: sent.sentByteCount + streamed.sentByteCount,
    }
  }

  protected async end(limitMs: number | undefined): Promise<void> {
    const ended = this.connections.empty()
    if (limitMs !== undefined && !(await within(ended, limitMs))) {
      for (const connection of this.connections.open) connection.destroy()
    }
    await ended
    this.#websockets.stop()
    this.#listener?.destroyConnections()
  }

  protected override run(sink: TransportSink): SinkCalls {
    const calls = super.run(sink)
    this.#websockets.start()
    return calls
  }

  /** As streams do, so that no data of a connection comes before its `open`. */
  protected override later(call: () => void): void {
    process.nextTick(call)
  }

  readonly #onUpgrade = (request: IncomingMessage, socket: Duplex, rest: Buffer): void => {
    const head = headOf(request)
    // `ws` reads the offers from here.
    const offers = this.options.compression === undefined ? '' : acceptedExtensions(head, { namesServerWindow: true })
    request.headers['sec-websocket-extensions'] = offers === '' ? undefined : offers
    this.#upgrades.receive(head, { request, socket: socket as Socket, rest })
  }
}

function destroy(this: Duplex): void {
  this.destroy()
}

/** Answers a request that is no upgrade with what is wrong with it, and ends its connection. */
function answerRequest(request: IncomingMessage, response: ServerResponse): void {
  const head = headOf(request)
  const fault = asksForWebSocket(head) ? findHandshakeFault(head) : undefined
  answerWith(response, rejectionOf('E_HANDSHAKE_INVALID', fault ?? UPGRADE_REQUIRED))
}
