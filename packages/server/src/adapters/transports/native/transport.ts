import type { IncomingMessage, Server } from 'node:http'
import { ERRORS, WebMQError } from 'webmq-client/protocol'
import type { NativeEngine } from 'webmq-native'
import { within } from '../../../kernel/base/within.js'
import type {
  AcceptOptions,
  ConnectionId,
  Rejection,
  Transport,
  TransportAddress,
  TransportSink,
  TransportStats,
  UpgradeId,
} from '../../../kernel/ports/transport.js'
import type { TlsCertificate, TransportOptions } from '../../../kernel/ports/transport-options.js'
import { SinkCalls } from '../sink-calls.js'
import { takeLaterUpgrades } from '../upgrade/take-upgrades.js'
import { NativeBackpressure } from './backpressure.js'
import { NativeCommands } from './commands.js'
import { createEngine, errorOf, listenerOn, NO_STATS, setCertificates, statsOf, ThreadCountdown } from './engine.js'
import { EventBuffers } from './event-buffers.js'
import { type EventPortion, type NativeEventHandlers, readEvents } from './events.js'
import { attachEngine, NativeHttp } from './http.js'
import { NativeOpenings } from './openings.js'

/** Work to do before other work of the event loop: about 2 ms, see `WORK` in `events.ts`. */
const MAX_TURN_WORK = 192 * 1024
/** The same where work takes longer than estimated: code that is not compiled yet. */
const MAX_TURN_MS = 6
/** Work between two looks at the clock: about 0.3 ms. */
const LOOK_WORK = 32 * 1024
const INLINE_BUFFER_BYTES = 64 * 1024

/**
 * The transport over WebMQ's own engine (Linux). Its threads accept, parse, write and watch; the event loop only
 * decides. While there is little work, the event loop does the threads' work itself (inline mode).
 *
 * Backpressure: while 8 MiB of commands wait, no events are taken, so publications wait in the sockets of their
 * connections. More than 64 MiB of commands block the event loop.
 */
export function createNativeTransport(options: TransportOptions, tuning: NativeTuning = {}): Transport {
  return new NativeTransport(options, tuning)
}

export interface NativeTuning {
  /** Whether the event loop does the threads' work while there is little of it; default true. */
  readonly isInline?: boolean
}

/** Commands go to the engine as they are. */
class NativeTransport extends NativeCommands implements Transport {
  readonly name = 'native'
  readonly capabilities = {
    tls: true,
    tlsReload: true,
    attach: true,
    threads: true,
    compression: true,
    pause: true,
    sse: true,
    proxyProtocol: true,
    overflow: true,
    unixSocket: true,
    answers: true,
  }

  readonly #options: TransportOptions
  readonly #isInline: boolean
  readonly #backpressure = new NativeBackpressure(() => this.#engine?.isWritable() ?? true)
  readonly #http: NativeHttp | undefined
  readonly #detachers = new Set<() => void>()
  /** Threads that still accept, and threads that still run. */
  readonly #accepting = new ThreadCountdown()
  readonly #running = new ThreadCountdown()
  readonly #inlineEvents = Buffer.allocUnsafeSlow(INLINE_BUFFER_BYTES)
  readonly #events = new EventBuffers((packed) => this.#engine?.drain(packed) ?? 0)
  readonly #front = new EventBuffers((packed) => this.#engine?.drainFront(packed, this.#events.handledBytes) ?? 0)
  #isFrontDue = true
  #engine: NativeEngine | undefined
  #calls: SinkCalls | undefined
  #openings: NativeOpenings | undefined
  #handlers: NativeEventHandlers | undefined
  #isStarted = false
  #isDrainScheduled = false
  #stopped: Promise<void> | undefined
  #lastStats = NO_STATS

  constructor(options: TransportOptions, { isInline = true }: NativeTuning) {
    super((packed, length) => {
      if (this.#engine !== undefined) this.#backpressure.note(this.#engine.submit(packed, length))
    })
    this.#options = options
    this.#isInline = isInline
    const { httpServer, probePaths } = options
    const takeSocket = (token: number) => this.#engine?.takeSocket(token) ?? -1
    const failed = (error: unknown) => this.#calls?.failed(errorOf(error))
    if (httpServer === undefined) return
    const http = new NativeHttp({ server: httpServer, probePaths }, takeSocket, failed)
    takeLaterUpgrades(httpServer, (request, _, head) => http.giveUpgradeBack(this.#engine, request, head))
    this.#http = http
  }

  async start(sink: TransportSink): Promise<TransportAddress> {
    if (this.#isStarted || this.#stopped !== undefined) {
      throw new WebMQError('E_TRANSPORT_FAILED', { detail: 'a transport is started once' })
    }
    this.#isStarted = true
    try {
      const { host, port, threads } = this.#options
      const listen = await listenerOn(host, port)
      const bound = listen(this.#run(sink))
      this.#accepting.begin(threads)
      return bound
    } catch (error) {
      this.#isStarted = false
      if (this.#detachers.size === 0) await this.#end()
      throw errorOf(error)
    }
  }

  attach(server: Server, sink: TransportSink, path?: string): () => void {
    const stopTaking = attachEngine(this.#run(sink), server, path, (error) => this.#calls?.failed(error))
    const detach = () => {
      stopTaking()
      this.#detachers.delete(detach)
    }
    this.#detachers.add(detach)
    return detach
  }

  takeStream(request: IncomingMessage): boolean {
    return this.#engine !== undefined && this.#http?.giveBack(this.#engine, request) === true
  }

  setCertificates(certificates: readonly TlsCertificate[]): void {
    if (this.#engine === undefined) throw new WebMQError('E_NOT_RUNNING')
    setCertificates(this.#engine, certificates)
  }

  override accept(upgrade: UpgradeId, options: AcceptOptions = {}): void {
    if (this.#stopped === undefined && this.#openings?.accept(upgrade) === true) super.accept(upgrade, options)
  }

  override reject(upgrade: UpgradeId, rejection: Rejection): void {
    if (this.#openings?.reject(upgrade) === true) super.reject(upgrade, rejection)
  }

  writable(): Promise<void> | undefined {
    return this.#backpressure.writable
  }

  stats(): TransportStats {
    return this.#engine === undefined ? this.#lastStats : statsOf(this.#engine)
  }

  async stopAccepting(): Promise<void> {
    for (const detach of this.#detachers) detach()
    if (this.#engine === undefined) return
    this.flush()
    this.#engine.stopAccepting()
    await this.#accepting.over()
  }

  stop(limitMs?: number): Promise<void> {
    this.#stopped ??= this.#end(limitMs)
    return this.#stopped
  }

  async #end(limitMs?: number): Promise<void> {
    for (const detach of this.#detachers) detach()
    const engine = this.#engine
    if (engine === undefined) return
    this.flush()
    engine.shutDown()
    if (limitMs === undefined) await this.#running.over()
    else if (!(await within(this.#running.over(), limitMs))) {
      // The threads drop what is left; their last events follow.
      engine.close()
      this.#drain()
      await this.#running.over()
    }
    this.#backpressure.note(true)
    this.#http?.close()
    this.#lastStats = statsOf(engine)
    this.#engine = undefined
    this.#calls = undefined
    this.#openings = undefined
    this.#handlers = undefined
    engine.close()
  }

  /** The engine; started on the first call. */
  #run(sink: TransportSink): NativeEngine {
    if (this.#stopped !== undefined) throw new WebMQError('E_NOT_RUNNING')
    if (this.#engine !== undefined) {
      if (this.#calls?.isOf(sink) === true) return this.#engine
      throw new WebMQError('E_OPTION_INVALID', { detail: 'a transport has one sink' })
    }
    this.#engine = createEngine(this.#options, this.#drain)
    this.#running.begin(this.#options.threads)
    // An event of the engine is no call to the transport: what it causes is told at once.
    const failed = (connection: ConnectionId) => this.close(connection, ERRORS.E_INTERNAL.closeCode, 'E_INTERNAL')
    const calls = new SinkCalls(sink, failed, (call) => call())
    const openings = new NativeOpenings(calls, (upgrade, rejection) => super.reject(upgrade, rejection))
    this.#calls = calls
    this.#openings = openings
    this.#handlers = {
      upgrade: (request) => openings.upgrade(request),
      messageRun: (connection, run) => calls.messageRun(connection, run),
      drained: (connection) => calls.drained(connection),
      closed: (connection, code, reason) => openings.closed(connection, code, reason),
      http: (token, peer, read) => this.#http?.serve(token, peer, read),
      failed: (detail) => calls.failed(new WebMQError('E_TRANSPORT_FAILED', { detail })),
      quiet: () => this.#accepting.oneLess(),
      ended: () => this.#running.oneLess(),
    }
    if (this.#isInline) this.#engine.enableInline(this.#inlineEvents, this.home, this.#turn)
    return this.#engine
  }

  /** Handles events in inline mode. The engine takes the commands from the start of `home`. */
  readonly #turn = (length: number): number => {
    if (this.#handlers === undefined) return 0
    this.hold()
    // The engine puts little into an inline turn.
    const portion = { packed: this.#inlineEvents, start: 0, end: length, receivedMs: performance.now() }
    readEvents(portion, this.#handlers, Number.POSITIVE_INFINITY)
    return this.releaseHome()
  }

  /**
   * Drains events portion by portion; the commands of a portion are submitted at its end. After `MAX_TURN_WORK` other work
   * of the event loop comes first: timers, HTTP and inline shards do not wait behind a flood. Node alone would not see to
   * that: it runs up to 1,000 threadsafe-function calls in a row.
   */
  readonly #drain = (): void => {
    if (this.#isDrainScheduled) return
    if (this.#backpressure.writable !== undefined) this.#backpressure.note(this.#engine?.isWritable() ?? true)
    const endMs = performance.now() + MAX_TURN_MS
    let work = 0
    for (let isOver = false; !isOver; ) {
      const portion = this.#nextPortion()
      if (portion === undefined || this.#handlers === undefined) return
      this.hold()
      do {
        work += readEvents(portion, this.#handlers, LOOK_WORK)
        isOver = work >= MAX_TURN_WORK || performance.now() >= endMs
      } while (!isOver && portion.start < portion.end)
      this.release()
    }
    this.#isDrainScheduled = true
    setImmediate(this.#drainOn)
  }

  /** Behind each part of a long portion come those who are not the cause of its length. */
  #nextPortion(): EventPortion | undefined {
    if (this.#front.isBegun || (this.#isFrontDue && this.#events.isBegun)) {
      this.#isFrontDue = false
      const front = this.#front.next()
      if (front !== undefined) return front
    }
    this.#isFrontDue = true
    return this.#events.next()
  }

  readonly #drainOn = (): void => {
    this.#isDrainScheduled = false
    this.#drain()
  }
}
