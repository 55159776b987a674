import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { ERRORS, WebMQError } from 'webmq-client/protocol'
import type { NativeEngine } from 'webmq-native'
import type {
  AcceptOptions,
  ConnectionId,
  GroupId,
  Rejection,
  Transport,
  TransportAddress,
  TransportOptions,
  TransportSink,
  TransportStats,
  UpgradeId,
} from '../transport.js'
import { NativeCommands } from './native-commands.js'
import { createEngine, errorOf, resolveAddress } from './native-engine.js'
import { type NativeEventHandlers, readEvents } from './native-events.js'
import { descriptorOf, NativeHttp, requestHead } from './native-http.js'

/** Events are taken from the engine in portions of this size; a larger message gets a buffer of its own. */
const EVENT_BUFFER_BYTES = 256 * 1024
/** Portions that are handled before the rest of the event loop has its turn. */
const MAX_PORTIONS = 8

const NO_STATS: TransportStats = {
  connections: 0,
  acceptedCount: 0,
  refusedCount: 0,
  closedCount: 0,
  slowConsumerCount: 0,
  receivedMessageCount: 0,
  receivedByteCount: 0,
  deliveredCount: 0,
  sentByteCount: 0,
  outboxBytes: 0,
}

/**
 * The transport over WebMQ's own engine (Linux): its threads accept, parse, write and watch; the event loop sees only what
 * has to be decided. Publications that come faster than the engine can write them wait in the sockets of the connections
 * that publish: while 8 MiB of commands wait, no events are taken. Commands over 64 MiB block the event loop.
 */
export function createNativeTransport(options: TransportOptions): Transport {
  return new NativeTransport(options)
}

class NativeTransport implements Transport {
  readonly name = 'native'
  readonly capabilities = { tls: false, attach: true, threads: true }

  readonly #options: TransportOptions
  readonly #commands: NativeCommands
  readonly #http: NativeHttp | undefined
  readonly #handlers: NativeEventHandlers
  #engine: NativeEngine | undefined
  #sink: TransportSink | undefined
  #isStarted = false
  #stopped: Promise<void> | undefined
  #lastStats = NO_STATS
  #events = Buffer.allocUnsafeSlow(EVENT_BUFFER_BYTES)
  /** Threads that still accept, and threads that still run; who waits for there to be none. */
  readonly #accepting = new Waiting()
  readonly #running = new Waiting()
  readonly #detachers = new Set<() => void>()

  constructor(options: TransportOptions) {
    this.#options = options
    this.#commands = new NativeCommands((packed, length) => this.#engine?.submit(packed, length))
    this.#http = options.httpServer === undefined ? undefined : new NativeHttp(options.httpServer)
    this.#handlers = this.#createHandlers()
  }

  async start(sink: TransportSink): Promise<TransportAddress> {
    if (this.#isStarted || this.#stopped !== undefined) {
      throw new WebMQError('E_TRANSPORT_FAILED', { detail: 'a transport is started once' })
    }
    this.#isStarted = true
    try {
      const { host, port } = this.#options
      const address = await resolveAddress(host, port)
      const engine = this.#run(sink)
      const bound = engine.listen(address, port)
      this.#accepting.count = this.#options.threads
      return bound
    } catch (error) {
      this.#isStarted = false
      if (this.#detachers.size === 0) await this.#end()
      throw errorOf(error)
    }
  }

  attach(server: Server, sink: TransportSink): () => void {
    const engine = this.#run(sink)
    const upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) =>
      this.#attachConnection(engine, server, request, socket, head)
    server.on('upgrade', upgrade)
    const detach = () => {
      server.off('upgrade', upgrade)
      this.#detachers.delete(detach)
    }
    this.#detachers.add(detach)
    return detach
  }

  accept(upgrade: UpgradeId, options: AcceptOptions = {}): void {
    this.#commands.accept(upgrade, options)
  }

  reject(upgrade: UpgradeId, rejection: Rejection): void {
    this.#commands.reject(upgrade, rejection)
  }

  join(connection: ConnectionId, group: GroupId): void {
    this.#commands.join(connection, group)
  }

  leave(connection: ConnectionId, group: GroupId): void {
    this.#commands.leave(connection, group)
  }

  multicast(groups: readonly GroupId[], data: Uint8Array | string, isBinary: boolean, except?: ConnectionId): void {
    if (groups.length > 0) this.#commands.multicast(groups, data, isBinary, except)
  }

  send(connection: ConnectionId, data: Uint8Array | string, isBinary: boolean): void {
    this.#commands.send(connection, data, isBinary)
  }

  close(connection: ConnectionId, code: number, reason: string): void {
    this.#commands.close(connection, code, reason)
  }

  stats(): TransportStats {
    return this.#engine?.stats() ?? this.#lastStats
  }

  async stopAccepting(): Promise<void> {
    for (const detach of this.#detachers) detach()
    if (this.#engine === undefined) return
    this.#commands.flush()
    this.#engine.stopAccepting()
    await this.#accepting.over()
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#end()
    return this.#stopped
  }

  async #end(): Promise<void> {
    const engine = this.#engine
    for (const detach of this.#detachers) detach()
    if (engine === undefined) return
    this.#commands.flush()
    engine.shutDown()
    await this.#running.over()
    this.#http?.close()
    this.#lastStats = engine.stats()
    this.#engine = undefined
    this.#sink = undefined
    engine.close()
  }

  /** The engine, started when it is first needed. */
  #run(sink: TransportSink): NativeEngine {
    if (this.#stopped !== undefined) throw new WebMQError('E_NOT_RUNNING')
    if (this.#sink !== undefined && this.#sink !== sink) {
      throw new WebMQError('E_OPTION_INVALID', { detail: 'a transport has one sink' })
    }
    this.#engine ??= createEngine(this.#options, () => this.#drain())
    this.#sink = sink
    this.#running.count = this.#options.threads
    return this.#engine
  }

  /** Takes what waits, portion by portion; commands of a portion are handed over with its end. */
  readonly #drain = (): void => {
    for (let portion = 0; portion < MAX_PORTIONS; portion++) {
      const length = this.#engine?.drain(this.#events) ?? 0
      if (length === 0) return
      if (length < 0) {
        this.#events = Buffer.allocUnsafeSlow(-length)
        continue
      }
      this.#commands.hold()
      readEvents(this.#events, length, this.#handlers)
      this.#commands.release()
      if (this.#events.length > EVENT_BUFFER_BYTES) this.#events = Buffer.allocUnsafeSlow(EVENT_BUFFER_BYTES)
    }
    setImmediate(this.#drain)
  }

  #createHandlers(): NativeEventHandlers {
    return {
      message: (connection, data, isBinary) => {
        try {
          this.#sink?.message(connection, data, isBinary)
        } catch (error) {
          this.#sinkThrew(error, connection)
        }
      },
      upgrade: (request) => {
        try {
          this.#sink?.upgrade(request)
        } catch (error) {
          this.#commands.reject(request.id, { status: 500, body: 'E_INTERNAL: internal error\n' })
          this.#sinkThrew(error)
        }
      },
      open: (connection, upgrade) => {
        try {
          this.#sink?.open(connection, upgrade)
        } catch (error) {
          this.#sinkThrew(error, connection)
        }
      },
      closed: (connection, code, reason) => {
        try {
          this.#sink?.closed(connection, code, reason)
        } catch (error) {
          this.#sinkThrew(error)
        }
      },
      http: (token, read) => {
        const fd = this.#engine?.takeSocket(token) ?? -1
        if (fd >= 0) this.#http?.serve(fd, read)
      },
      failed: (detail) => this.#sink?.failed(new WebMQError('E_TRANSPORT_FAILED', { detail })),
      quiet: () => this.#accepting.less(),
      ended: () => this.#running.less(),
    }
  }

  /** A bug of the owner: the connection ends, and the bug is told. */
  #sinkThrew(cause: unknown, connection?: ConnectionId): void {
    if (connection !== undefined) this.#commands.close(connection, ERRORS.E_INTERNAL.closeCode, 'E_INTERNAL')
    this.#sink?.failed(new WebMQError('E_TRANSPORT_FAILED', { detail: 'the sink threw', cause }))
  }

  #attachConnection(
    engine: NativeEngine,
    server: Server,
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
  ): void {
    const isWebSocket = /\bwebsocket\b/i.test(request.headers.upgrade ?? '')
    // Somebody else on the same server takes what is not for us.
    if (!isWebSocket && server.listenerCount('upgrade') > 1) return
    const fd = descriptorOf(socket)
    try {
      if (fd === undefined) {
        throw new WebMQError('E_UNSUPPORTED', { detail: 'only plain TCP connections can be attached' })
      }
      engine.attach(fd, Buffer.concat([requestHead(request), head]))
      // The engine has a descriptor of its own by now.
      socket.destroy()
    } catch (error) {
      socket.end('HTTP/1.1 501 Not Implemented\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
      this.#sink?.failed(errorOf(error))
    }
  }
}

/** Counts down to nothing, for those who wait. */
class Waiting {
  count = 0
  readonly #resolvers: (() => void)[] = []

  less(): void {
    if (this.count > 0) this.count--
    if (this.count === 0) for (const resolve of this.#resolvers.splice(0)) resolve()
  }

  async over(): Promise<void> {
    if (this.count > 0) await new Promise<void>((resolve) => this.#resolvers.push(resolve))
  }
}
