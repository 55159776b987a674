import { once } from 'node:events'
import type { Socket } from 'node:net'
import { type Channel, type ConfirmChannel, type Connection, connect } from 'amqplib/callback_api'
import { type RabbitmqAddress, type RabbitmqHost, secureContextOf } from './address.js'

/** The broker finds a node that is gone by these; RabbitMQ's guide calls less than 5 s prone to false alarms. */
const MIN_AMQP_HEARTBEAT_SECONDS = 5
/** An orderly end may take this long; then the socket is destroyed. */
const CLOSE_TIMEOUT_MS = 2_000

/**
 * What we use of amqplib's inner connection beyond its typed face: the version is pinned exactly, and the conformance suite
 * runs through all of it. A message published through its public face costs 13 to 20 µs of CPU and a write of its own; frames of
 * ours, one write per turn, cost 4 to 5 (100-byte payloads, 2 cores).
 */
interface InnerConnection {
  readonly stream: Socket
  /** Largest frame, in bytes, that the broker takes. */
  readonly frameMax: number
  /** What was received and not read yet. */
  rest: Buffer
  /** Reads a frame from `rest`, or receives more and calls itself. */
  recvFrame(): unknown
  sendBytes(bytes: Uint8Array): void
  /** A method frame, past the queue of calls that wait for answers. */
  sendMethod(channel: number, method: number, fields: object): void
}

/** Who connects, for the broker's list of connections. */
export interface ConnectionPurpose {
  readonly name: string
  readonly heartbeatMs: number
}

/** Reads frames in place. */
export interface FrameReader {
  /** Takes its frames from `start` on, until the first that is not; returns where they end. */
  read(bytes: Buffer, start: number): number
}

/** One AMQP connection: an established one, until it ends for whatever reason, once. */
export class AmqpConnection {
  readonly model: Connection
  readonly #inner: InnerConnection
  readonly #readers: FrameReader[] = []
  #isEnded = false

  /** @param onEnd Called once, when the connection ends otherwise than by `close`. */
  constructor(model: Connection, onEnd: (cause: Error) => void) {
    this.model = model
    this.#inner = model.connection as unknown as InnerConnection
    const end = (cause?: Error) => {
      if (this.#isEnded) return
      this.#isEnded = true
      onEnd(cause ?? new Error('the connection was closed'))
    }
    // An end that an operator has ordered comes as `close` alone.
    model.on('error', end)
    model.on('close', end)
  }

  get frameMaxBytes(): number {
    return this.#inner.frameMax
  }

  /** Writes frames, complete ones. */
  send(frames: Uint8Array): void {
    if (!this.#isEnded) this.#inner.sendBytes(frames)
  }

  /** Sends a method without waiting for those that were called before to be answered. */
  sendMethod(channel: Channel, method: number, fields: object): void {
    if (!this.#isEnded) this.#inner.sendMethod(numberOf(channel), method, fields)
  }

  /** Lets this reader have what comes, before amqplib; it takes whole frames. Of several readers each takes what is its own. */
  readFirst(reader: FrameReader): void {
    this.#readers.push(reader)
    if (this.#readers.length > 1) return
    const inner = this.#inner
    const receive = inner.recvFrame.bind(inner)
    inner.recvFrame = () => {
      const byteCount = this.#read(inner.rest)
      if (byteCount > 0) inner.rest = inner.rest.subarray(byteCount)
      return receive()
    }
  }

  openChannel(): Promise<Channel> {
    return called((done) => this.model.createChannel(done))
  }

  openConfirmChannel(): Promise<ConfirmChannel> {
    return called((done) => this.model.createConfirmChannel(done))
  }

  /** Ends it: in order when the broker answers within 2 s, by force otherwise. Never rejects. */
  async close(): Promise<void> {
    const { stream } = this.#inner
    const isOpen = !this.#isEnded
    this.#isEnded = true
    if (isOpen && !stream.destroyed) {
      const timeout = AbortSignal.timeout(CLOSE_TIMEOUT_MS)
      const closed = called<unknown>((done) => this.model.close((error) => done(error ?? null, undefined)))
      // Without an answer in time there is nothing that would have to be done about it.
      await Promise.race([closed, once(timeout, 'abort')]).catch(() => undefined)
    }
    this.destroy()
  }

  #read(bytes: Buffer): number {
    let end = 0
    for (;;) {
      const start = end
      for (const reader of this.#readers) end = reader.read(bytes, end)
      if (end === start || this.#readers.length === 1) return end
    }
  }

  /** Ends it at once: what waits for an answer rejects, and amqplib's timers end. */
  destroy(): void {
    this.#isEnded = true
    this.#inner.stream.destroy(new Error('the connection was given up'))
  }
}

/** Takes the answers of this kind out of a channel, which knows only answers that one call waits for. */
export function dropReplies(channel: Channel, method: number): void {
  const inner = channel as unknown as { accept(frame: { readonly id?: number }): unknown }
  const accept = inner.accept.bind(channel)
  inner.accept = (frame) => {
    if (frame.id !== method) accept(frame)
  }
}

/**
 * Tells when a channel has ended, once, and why. An end of the connection ends its channels too, and tells them less: those who watch
 * both hear of the connection first.
 */
export function watchChannel(channel: Channel, onEnd: (cause: Error) => void): void {
  let cause = new Error('the channel was closed')
  channel.on('error', (error) => {
    cause = error
  })
  channel.on('close', () => process.nextTick(() => onEnd(cause)))
}

/** The number of a channel, which stands in each of its frames. */
export function numberOf(channel: Channel): number {
  return (channel as unknown as { readonly ch: number }).ch
}

/** Turns a call with a callback into a promise; also when the call throws. */
export function called<T>(call: (done: (error: Error | null | undefined, result: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    call((error, result) => (error == null ? resolve(result) : reject(error)))
  })
}

/** Connects to one host. */
export async function connectTo(
  address: RabbitmqAddress,
  host: RabbitmqHost,
  { name, heartbeatMs }: ConnectionPurpose,
  signal: AbortSignal,
): Promise<Connection> {
  const { hostname, port, username, password } = host
  const { vhost, tls } = address
  const secure = tls === undefined ? undefined : await secureContextOf(tls)
  // The signal is for the attempt alone; a socket that had it would be destroyed when the node stops, long after.
  const attempt = new AbortController()
  const abort = () => attempt.abort(signal.reason)
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  const heartbeat = Math.max(MIN_AMQP_HEARTBEAT_SECONDS, Math.ceil(heartbeatMs / 1_000))
  const socketOptions = {
    noDelay: true,
    signal: attempt.signal,
    clientProperties: { connection_name: name },
    ...(tls === undefined ? undefined : { ...secure, rejectUnauthorized: tls.isVerified }),
    ...(tls?.servername === undefined ? undefined : { servername: tls.servername }),
  }
  const protocol = tls === undefined ? 'amqp' : 'amqps'
  try {
    return await called((done) =>
      connect({ protocol, hostname, port, username, password, vhost, heartbeat }, socketOptions, done),
    )
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
