import type { IncomingMessage, ServerResponse } from 'node:http'
import { ERRORS } from 'webmq-client/protocol'
import type { AcceptOptions, ConnectionId, OutboxLevel, Rejection, UpgradeId } from '../../ports/transport.js'
import type { TransportOptions } from '../../ports/transport-options.js'
import type { Connections } from '../connections.js'
import type { SinkCalls } from '../sink-calls.js'
import { rejectionOf } from '../upgrade/rejection.js'
import { StreamOutbox } from './outbox.js'
import { StreamRequests } from './requests.js'
import { EventStream, type StreamOwner } from './stream.js'

/** A comment (WHATWG HTML §9.2.6). */
const HEARTBEAT = Buffer.from(':\n\n')
/** Time in which a peer to whom everything was said may go on sending. */
const LINGER_MS = 1_000

type StreamOptions = Pick<
  TransportOptions,
  'maxOutboxBytes' | 'maxHeaderBytes' | 'handshakeTimeoutMs' | 'pingIntervalMs' | 'closeTimeoutMs'
>

/** Connections of the transport, streams among them. */
type StreamConnections = Pick<
  Connections<EventStream>,
  'add' | 'remove' | 'forget' | 'leaveGroups' | 'acceptedCount' | 'slowConsumerCount'
>

export interface EventStreamsContext {
  readonly calls: () => SinkCalls | undefined
  /** Whether another connection exceeds the limit of the transport. */
  isFull(pendingCount: number): boolean
}

/**
 * Event streams of a transport that runs on the event loop: each is the response of a Node `http` server. A peer that vanishes
 * without a word is noticed when the socket of its stream is full, or by the system, after about a quarter of an hour on Linux.
 */
export class EventStreams implements StreamOwner {
  readonly #options: StreamOptions
  readonly #context: EventStreamsContext
  readonly #requests: StreamRequests
  readonly #connections: StreamConnections
  readonly #outbox: StreamOutbox
  readonly #streams = new Set<EventStream>()
  /** Sockets that answer no other request. */
  readonly #taken = new WeakSet<object>()
  #heartbeat: NodeJS.Timeout | undefined

  constructor(options: StreamOptions, connections: StreamConnections, context: EventStreamsContext) {
    this.#options = options
    this.#connections = connections
    this.#context = context
    this.#requests = new StreamRequests({ ...options, isFull: (pendingCount) => context.isFull(pendingCount) })
    this.#outbox = new StreamOutbox(options.maxOutboxBytes, {
      overflow: (stream) => this.#drop(stream, 'E_SLOW_CONSUMER'),
      drained: (stream) => context.calls()?.drained(stream.id),
    })
  }

  get refusedCount(): number {
    return this.#requests.refusedCount
  }

  outboxStats() {
    return this.#outbox.stats()
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
    this.#connections.acceptedCount++
    const stream = new EventStream(this, upgrade as number as ConnectionId, upgrade, socket)
    this.#streams.add(stream)
    this.#connections.add(stream)
    this.#context.calls()?.open(stream.id, upgrade)
    socket.once('end', () => socket.destroy())
    socket.once('close', () => this.#forget(stream))
    socket.on('drain', () => this.#outbox.checkLevel(stream))
    const { pingIntervalMs } = this.#options
    if (pingIntervalMs > 0) this.#heartbeat ??= setInterval(() => this.#beat(), pingIntervalMs)
    if (socket.destroyed) this.#forget(stream)
  }

  /** @throws {WebMQError} `E_OPTION_INVALID`; the request stays pending. */
  reject(upgrade: UpgradeId, rejection: Rejection): void {
    this.#requests.reject(upgrade, rejection)
  }

  push(stream: EventStream, bytes: Uint8Array): void {
    this.#outbox.push(stream, bytes)
  }

  await(stream: EventStream, level: OutboxLevel): void {
    this.#outbox.await(stream, level)
  }

  close(stream: EventStream, code: number, reason: string): void {
    stream.ending = { code, reason }
    stream.awaitedLevel = undefined
    this.#connections.leaveGroups(stream)
    this.#outbox.flush(stream)
    stream.socket.end()
    this.#destroyLater(stream, this.#options.closeTimeoutMs)
    stream.socket.once('finish', () => this.#destroyLater(stream, LINGER_MS))
  }

  /** Closes a stream whose sink threw. */
  fail(stream: EventStream): void {
    this.close(stream, ERRORS.E_INTERNAL.closeCode, 'E_INTERNAL')
  }

  /** Refuses all pending requests, and stops the heartbeat. */
  stop(): void {
    this.#requests.rejectAll(rejectionOf('E_DRAIN', { status: 503 }))
    clearInterval(this.#heartbeat)
    this.#heartbeat = undefined
  }

  #beat(): void {
    for (const stream of this.#streams) {
      if (stream.ending !== undefined) continue
      const { socket } = stream
      const takenBytes = stream.givenBytes - socket.writableLength
      if (socket.writableLength === 0) {
        stream.takenBytes = undefined
        this.#outbox.give(stream, HEARTBEAT)
      } else if (stream.takenBytes === takenBytes) this.#drop(stream, 'E_HEARTBEAT_TIMEOUT')
      else stream.takenBytes = takenBytes
    }
  }

  #drop(stream: EventStream, code: 'E_SLOW_CONSUMER' | 'E_HEARTBEAT_TIMEOUT'): void {
    if (stream.ending !== undefined) return
    if (code === 'E_SLOW_CONSUMER') this.#connections.slowConsumerCount++
    stream.ending = { code: ERRORS[code].closeCode, reason: code }
    stream.socket.destroy()
    this.#forget(stream)
  }

  #destroyLater({ socket }: EventStream, delayMs: number): void {
    const timer = setTimeout(() => socket.destroy(), delayMs)
    socket.once('close', () => clearTimeout(timer))
  }

  #forget(stream: EventStream): void {
    if (stream.isClosed) return
    stream.isClosed = true
    this.#streams.delete(stream)
    this.#connections.remove(stream)
    const { code, reason } = stream.ending ?? { code: 1006, reason: '' }
    this.#context.calls()?.closed(stream.id, code, reason)
    this.#connections.forget(stream)
  }
}
