import type { IncomingMessage, ServerResponse } from 'node:http'
import { ERRORS } from 'webmq-client/protocol'
import { copyFrame } from '../../ports/copy-bytes.js'
import type {
  AcceptOptions,
  ConnectionId,
  FrameData,
  GroupId,
  OutboxLevel,
  Rejection,
  TransportOptions,
  UpgradeId,
} from '../../ports/transport.js'
import { Groups } from '../groups.js'
import type { SinkCalls } from '../sink-calls.js'
import { rejectionOf } from '../upgrade/rejection.js'
import { StreamRequests } from './requests.js'
import { EventStream } from './stream.js'

/** A comment (WHATWG HTML §9.2.6). */
const HEARTBEAT = Buffer.from(':\n\n')
const NOTHING = Buffer.alloc(0)
/** Bytes after which a connection is written before the end of the turn. */
const GATHER_BYTES = 64 * 1024
/** Share of `maxOutboxBytes` of the level `low`. */
const LOW_SHARE = 1 / 4
/** Time in which a peer to whom everything was said may go on sending. */
const LINGER_MS = 1_000

type StreamOptions = Pick<
  TransportOptions,
  'maxOutboxBytes' | 'maxHeaderBytes' | 'handshakeTimeoutMs' | 'pingIntervalMs' | 'closeTimeoutMs'
>

/** What {@link EventStreams} works with. */
export interface EventStreamsContext {
  readonly calls: () => SinkCalls | undefined
  /** Whether another connection exceeds the limit of the transport. */
  isFull(pendingCount: number): boolean
  /** All streams are gone. */
  ended(): void
}

/**
 * Event streams of a transport that runs on the event loop: each is the response of a Node `http` server. A peer that vanishes
 * without a word is noticed when the socket of its stream is full, or by the system, after about a quarter of an hour on Linux.
 */
export class EventStreams {
  readonly #options: StreamOptions
  readonly #context: EventStreamsContext
  readonly #requests: StreamRequests
  readonly #streams = new Map<ConnectionId, EventStream>()
  readonly #groups = new Groups<EventStream>()
  /** Sockets that answer no other request. */
  readonly #taken = new WeakSet<object>()
  readonly #dirty: EventStream[] = []
  #turnEnd: NodeJS.Immediate | undefined
  #heartbeat: NodeJS.Timeout | undefined
  #acceptedCount = 0
  #closedCount = 0
  #slowConsumerCount = 0
  #deliveredCount = 0
  #sentByteCount = 0

  constructor(options: StreamOptions, context: EventStreamsContext) {
    this.#options = options
    this.#context = context
    this.#requests = new StreamRequests({ ...options, isFull: (pendingCount) => context.isFull(pendingCount) })
  }

  /** Open streams, and those that still send what is queued. */
  get size(): number {
    return this.#streams.size
  }

  /** Cost: O(streams). */
  stats() {
    let outboxBytes = 0
    let sentByteCount = this.#sentByteCount
    for (const { socket, givenBytes } of this.#streams.values()) {
      outboxBytes += socket.writableLength
      sentByteCount += givenBytes
    }
    return {
      connections: this.#streams.size,
      acceptedCount: this.#acceptedCount,
      refusedCount: this.#requests.refusedCount,
      closedCount: this.#closedCount,
      slowConsumerCount: this.#slowConsumerCount,
      deliveredCount: this.#deliveredCount,
      sentByteCount,
      outboxBytes,
    }
  }

  /** Handles a `GET` of the path. */
  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    const { socket } = request
    // A second request behind the first.
    if (this.#taken.has(socket)) {
      socket.destroy()
      return
    }
    this.#taken.add(socket)
    // The time limits of streams are here, not those of the server.
    socket.setTimeout(0)
    const upgrade = this.#requests.receive(request, response)
    if (upgrade === undefined || this.#context.calls()?.upgrade(upgrade) === true) return
    this.#requests.reject(upgrade.id, rejectionOf('E_INTERNAL', { status: 500 }))
  }

  /** @throws {WebMQError} `E_OPTION_INVALID`; the request stays pending. */
  accept(upgrade: UpgradeId, options: AcceptOptions): void {
    const response = this.#requests.accept(upgrade, options)
    const { socket } = response ?? {}
    if (response === undefined || socket === null || socket === undefined) return
    this.#acceptedCount++
    const stream = new EventStream(upgrade as number as ConnectionId, upgrade, socket)
    this.#streams.set(stream.id, stream)
    this.#context.calls()?.open(stream.id, upgrade)
    socket.once('end', () => socket.destroy())
    socket.once('close', () => this.#forget(stream))
    socket.on('drain', () => this.#checkLevel(stream))
    const { pingIntervalMs } = this.#options
    if (pingIntervalMs > 0) this.#heartbeat ??= setInterval(() => this.#beat(), pingIntervalMs)
    if (socket.destroyed) this.#forget(stream)
  }

  /** @throws {WebMQError} `E_OPTION_INVALID`; the request stays pending. */
  reject(upgrade: UpgradeId, rejection: Rejection): void {
    this.#requests.reject(upgrade, rejection)
  }

  join(id: ConnectionId, group: GroupId): void {
    const stream = this.#openStream(id)
    if (stream !== undefined) this.#groups.join(stream, group)
  }

  leave(id: ConnectionId, group: GroupId): void {
    const stream = this.#openStream(id)
    if (stream !== undefined) this.#groups.leave(stream, group)
  }

  multicast(groups: readonly GroupId[], data: FrameData, except: ConnectionId | undefined): void {
    if (!this.#groups.hasMembers(groups)) return
    const bytes = copyFrame(data)
    this.#groups.forEachMember(groups, (stream) => {
      if (stream.id !== except) this.#push(stream, bytes)
    })
  }

  send(id: ConnectionId, data: FrameData): void {
    const stream = this.#openStream(id)
    if (stream !== undefined) this.#push(stream, copyFrame(data))
  }

  notifyDrained(id: ConnectionId, level: OutboxLevel): void {
    const stream = this.#openStream(id)
    if (stream === undefined) return
    stream.awaitedLevel = level
    this.#markDirty(stream)
  }

  close(id: ConnectionId, code: number, reason: string): void {
    const stream = this.#openStream(id)
    if (stream === undefined) return
    stream.ending = { code, reason }
    this.#groups.leaveAll(stream)
    this.#uncork(stream)
    stream.socket.end()
    this.#destroyLater(stream, this.#options.closeTimeoutMs)
    stream.socket.once('finish', () => this.#destroyLater(stream, LINGER_MS))
  }

  /** Closes all streams. */
  stop(code: number, reason: string): void {
    this.#requests.rejectAll(rejectionOf('E_DRAIN', { status: 503 }))
    for (const id of this.#streams.keys()) this.close(id, code, reason)
    clearInterval(this.#heartbeat)
    this.#heartbeat = undefined
  }

  /** Ends what is left, without waiting. */
  destroy(): void {
    for (const { socket } of this.#streams.values()) socket.destroy()
  }

  #openStream(id: ConnectionId): EventStream | undefined {
    const stream = this.#streams.get(id)
    return stream?.ending === undefined ? stream : undefined
  }

  #push(stream: EventStream, bytes: Uint8Array): void {
    const { socket } = stream
    this.#deliveredCount++
    this.#markDirty(stream)
    stream.givenBytes += bytes.byteLength
    socket.write(bytes)
    if (socket.writableLength < GATHER_BYTES) return
    // In parts: a burst reaches the kernel before it counts against the outbox.
    this.#uncork(stream)
    if (socket.writableLength > this.#options.maxOutboxBytes) this.#drop(stream, 'E_SLOW_CONSUMER')
  }

  #markDirty(stream: EventStream): void {
    if (stream.isDirty) return
    stream.isDirty = true
    stream.socket.cork()
    this.#dirty.push(stream)
    this.#turnEnd ??= setImmediate(() => this.#flushAll())
  }

  #uncork(stream: EventStream): void {
    if (!stream.isDirty) return
    stream.isDirty = false
    stream.socket.uncork()
  }

  #flushAll(): void {
    this.#turnEnd = undefined
    for (const stream of this.#dirty.splice(0)) {
      this.#uncork(stream)
      if (stream.socket.writableLength > this.#options.maxOutboxBytes) this.#drop(stream, 'E_SLOW_CONSUMER')
      else this.#checkLevel(stream)
    }
  }

  #checkLevel(stream: EventStream): void {
    const { awaitedLevel, socket } = stream
    if (awaitedLevel === undefined || stream.isClosed || stream.ending !== undefined) return
    const maxBytes = awaitedLevel === 'empty' ? 0 : this.#options.maxOutboxBytes * LOW_SHARE
    if (socket.writableLength <= maxBytes) {
      stream.awaitedLevel = undefined
      this.#context.calls()?.drained(stream.id)
      // Node tells nothing of a write that the kernel takes later, unless more than its own limit waits.
    } else socket.write(NOTHING, () => this.#checkLevel(stream))
  }

  #beat(): void {
    for (const stream of this.#streams.values()) {
      if (stream.ending !== undefined) continue
      const { socket } = stream
      const takenBytes = stream.givenBytes - socket.writableLength
      if (socket.writableLength === 0) {
        stream.takenBytes = undefined
        stream.givenBytes += HEARTBEAT.length
        socket.write(HEARTBEAT)
      } else if (stream.takenBytes === takenBytes) this.#drop(stream, 'E_HEARTBEAT_TIMEOUT')
      else stream.takenBytes = takenBytes
    }
  }

  #drop(stream: EventStream, code: 'E_SLOW_CONSUMER' | 'E_HEARTBEAT_TIMEOUT'): void {
    if (stream.ending !== undefined) return
    if (code === 'E_SLOW_CONSUMER') this.#slowConsumerCount++
    stream.ending = { code: ERRORS[code].closeCode, reason: code }
    stream.socket.destroy()
    this.#forget(stream)
  }

  /** Closes the connection of a transport whose sink threw. */
  fail(id: ConnectionId): void {
    this.close(id, ERRORS.E_INTERNAL.closeCode, 'E_INTERNAL')
  }

  #destroyLater({ socket }: EventStream, delayMs: number): void {
    const timer = setTimeout(() => socket.destroy(), delayMs)
    socket.once('close', () => clearTimeout(timer))
  }

  #forget(stream: EventStream): void {
    if (stream.isClosed) return
    stream.isClosed = true
    this.#groups.leaveAll(stream)
    this.#streams.delete(stream.id)
    this.#closedCount++
    this.#sentByteCount += stream.givenBytes
    const { code, reason } = stream.ending ?? { code: 1006, reason: '' }
    this.#context.calls()?.closed(stream.id, code, reason)
    if (this.#streams.size === 0) this.#context.ended()
  }
}
