import type { IncomingMessage, ServerResponse } from 'node:http'
import { ERRORS, WebMQError } from 'webmq-client/protocol'
import type { AcceptOptions, ConnectionId, OutboxLevel, Rejection, UpgradeId } from '../../../kernel/ports/transport.js'
import type { TransportOptions } from '../../../kernel/ports/transport-options.js'
import type { Connections } from '../connections.js'
import { findStreamFault, headOf } from '../upgrade/handshake.js'
import { PendingUpgrades, type RefusedCounts, type UpgradeHandling } from '../upgrade/pending.js'
import { answerWith } from '../upgrade/rejection.js'
import { EventStream, type StreamFrame, StreamOutbox } from './stream.js'

/** A comment (WHATWG HTML §9.2.6). */
const HEARTBEAT = Buffer.from(':\n\n')
/** Far beyond the ids of a transport's WebSockets, so that an id says which kind it is of. */
const FIRST_ID = 2 ** 52
const HEADERS = {
  'content-type': 'text/event-stream',
  // A proxy that compresses holds events back until it has a block.
  'cache-control': 'no-store, no-transform',
  // nginx holds events back otherwise.
  'x-accel-buffering': 'no',
}
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

export function isStreamId(id: number): boolean {
  return id >= FIRST_ID
}

type EventStreamsContext = Pick<UpgradeHandling<ServerResponse>, 'calls' | 'isFull'>

/**
 * Event streams of a transport that runs on the event loop: each is the response of a Node `http` server. A peer that vanishes
 * without a word is noticed when the socket of its stream is full, or by the system, after about a quarter of an hour on Linux.
 */
export class EventStreams {
  readonly #options: StreamOptions
  readonly #context: EventStreamsContext
  readonly #requests: PendingUpgrades<ServerResponse>
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
    this.#requests = new PendingUpgrades(options, {
      ...context,
      requests: { kind: 'sse', firstId: FIRST_ID, findFault: findStreamFault },
      answer: answerWith,
      waits: (response, gone) => void response.once('close', gone),
    })
    this.#outbox = new StreamOutbox(options.maxOutboxBytes, {
      overflow: (stream) => this.#drop(stream, 'E_SLOW_CONSUMER'),
      drained: (stream) => context.calls()?.drained(stream.id),
    })
  }

  get refused(): RefusedCounts {
    return this.#requests.refused
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
    this.#requests.receive(headOf(request), response)
  }

  /** @throws {WebMQError} `E_OPTION_INVALID`; the request stays pending. */
  accept(upgrade: UpgradeId, options: AcceptOptions): void {
    const { headers = {} } = options
    const own = Object.keys(headers).find((name) => Object.hasOwn(HEADERS, name.toLowerCase()))
    if (own !== undefined) {
      throw new WebMQError('E_OPTION_INVALID', { detail: `header ${own} is written by the transport` })
    }
    const response = this.#requests.accept(upgrade, options)
    if (response === undefined) return
    begin(response, headers)
    const { socket } = response
    if (socket === null) return
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

  push(stream: EventStream, { payload }: StreamFrame): void {
    this.#outbox.push(stream, payload)
  }

  await(stream: EventStream, level: OutboxLevel): void {
    if (stream.isOpen) this.#outbox.await(stream, level)
  }

  pause(): void {
    // Nothing is read from a stream.
  }

  resume(): void {
    // Nothing is paused.
  }

  close(stream: EventStream, code: number, reason: string): void {
    if (!stream.isOpen) return
    stream.ending = { code, reason }
    stream.awaitedLevel = undefined
    this.#connections.leaveGroups(stream)
    this.#outbox.flush(stream)
    stream.socket.end()
    this.#destroyLater(stream, this.#options.closeTimeoutMs)
    stream.socket.once('finish', () => this.#destroyLater(stream, LINGER_MS))
  }

  fail(stream: EventStream): void {
    this.close(stream, ERRORS.E_INTERNAL.closeCode, 'E_INTERNAL')
  }

  /** Refuses all pending requests, and stops the heartbeat. */
  stop(rejection: Rejection): void {
    this.#requests.rejectAll(rejection)
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

/** Begins a response whose body ends with the connection. */
function begin(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
  response.shouldKeepAlive = false
  response.removeHeader('transfer-encoding')
  response.writeHead(200, { ...HEADERS, ...headers })
  response.flushHeaders()
}
