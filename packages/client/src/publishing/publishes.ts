import type { WhenOffline } from '../client-options.js'
import { backoffMs } from '../connection/backoff.js'
import { nowMs } from '../connection/clock.js'
import type { Sender } from '../connection/sender.js'
import { errorOfServer } from '../connection/server-error.js'
import { invalid, MAX_TIMER_MS, type ResolvedOptions } from '../options.js'
import {
  type ClientMessage,
  type ErrorCode,
  encodePublish,
  isMessageId,
  type ServerMessage,
  type SessionLimits,
  validateKey,
  WebMQError,
  type WirePayload,
} from '../protocol/index.js'
import type { PublishOptions, PublishResult } from '../types.js'
import { encodePayload, wireBytes } from './payload.js'
import { randomName } from './random-name.js'

type PublishMessage = Extract<ClientMessage, { verb: 'publish' }>

/** A publish that has not settled: it waits for a connection or for its acknowledgement. */
interface Pending {
  /** The message id. */
  readonly id: string
  readonly message: PublishMessage
  readonly whenOffline: WhenOffline
  readonly timeoutMs: number
  readonly createdAtMs: number
  /** Payload bytes; 0 until it has waited for a connection. */
  bytes: number
  isSent: boolean
  deadlineMs: number
  settle(outcome: PublishResult | WebMQError): void
}

/**
 * Limit of the publishes that wait for acknowledgements on a live connection. Limits memory if a caller never awaits.
 */
const MAX_IN_FLIGHT = 16_384

/** Limit of the bytes in the socket's buffer. Limits memory if the network is slower than the app. */
const MAX_SOCKET_BYTES = 16_777_216

/**
 * Publishes messages in call order, and keeps them until they are acknowledged.
 *
 * Each pending publish is either sent or not. A lost connection makes all of them unsent; the next one sends them again
 * with the same ids.
 */
export class Publishes {
  readonly #options: ResolvedOptions
  readonly #sender: Sender
  readonly #pending = new Map<string, Pending>()
  /** Part of every message id; not made before the first, because a server that renders pages needs none. */
  #name: string | undefined
  /** Set while publishes that would be queued wait for the server's rate limit. */
  #pauseTimer: ReturnType<typeof setTimeout> | undefined
  #pauses = 0
  #onIdle: (() => void) | undefined
  #limits: SessionLimits | undefined
  #waitingCount = 0
  #waitingBytes = 0
  #lastId = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #timerAtMs = Infinity

  constructor(options: ResolvedOptions, sender: Sender) {
    this.#options = options
    this.#sender = sender
  }

  /** Number of publishes that wait for a connection. */
  get waitingCount(): number {
    return this.#waitingCount
  }

  /** Resolves when no publish is pending, or after `maxMs`. */
  async idle(maxMs: number): Promise<void> {
    if (this.#pending.size === 0) return
    const before = this.#onIdle
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, maxMs)
      this.#onIdle = () => {
        clearTimeout(timer)
        resolve()
        before?.()
      }
    })
  }

  /** Publishes a message. The payload has been encoded, or copied, when this returns. */
  publish(key: string, payload: unknown, options: PublishOptions): Promise<PublishResult> {
    return new Promise((resolve, reject) => {
      validateKey(key)
      const { id = this.#createId(), echo = true, signal } = options
      if (!isMessageId(id)) throw invalid(`id ${id}`)
      const { whenOffline = this.#options.whenOffline, timeoutMs = this.#options.ackTimeoutMs } = options
      if (!(timeoutMs >= 0)) throw invalid(`timeoutMs ${timeoutMs}`)
      const requestId = `p${++this.#lastId}`
      const message: PublishMessage = {
        verb: 'publish',
        ...(options.ack === 'none' ? {} : { id: requestId }),
        key,
        messageId: id,
        echo,
        payload: encodePayload(payload, this.#options.codec),
      }
      const abort = () => pending.settle(new WebMQError('E_ABORTED', { detail: id }))
      const pending: Pending = {
        id,
        message,
        whenOffline,
        timeoutMs,
        createdAtMs: nowMs(),
        bytes: 0,
        isSent: true,
        deadlineMs: 0,
        settle: (outcome) => {
          signal?.removeEventListener('abort', abort)
          this.#stopWaiting(pending)
          this.#pending.delete(requestId)
          if (outcome instanceof WebMQError) reject(outcome)
          else resolve(outcome)
          if (this.#pending.size === 0) this.#onIdle?.()
        },
      }
      if (signal?.aborted) {
        abort()
        return
      }
      signal?.addEventListener('abort', abort)
      this.#pending.set(requestId, pending)
      if (!this.#sender.isLive || (this.#pauseTimer !== undefined && whenOffline === 'queue')) this.#enqueue(pending)
      else if (this.#pending.size > MAX_IN_FLIGHT) {
        pending.settle(full(`${MAX_IN_FLIGHT} wait for answers: await earlier publishes`))
      } else if (this.#sender.bufferedBytes > MAX_SOCKET_BYTES) {
        pending.settle(full(`${MAX_SOCKET_BYTES} bytes wait for the network: await earlier publishes`))
      } else this.#send(pending)
    })
  }

  /** A connection is live and listens again: send the waiting messages, in order. */
  up(limits: SessionLimits): void {
    this.#limits = limits
    this.#pauses = 0
    this.#flush()
  }

  /** The connection is lost: unacknowledged messages are sent again later, unless their caller chose otherwise. */
  down(): void {
    this.#resume()
    for (const pending of this.#pending.values()) {
      if (!pending.isSent) continue
      if (pending.whenOffline === 'queue') this.#wait(pending)
      else pending.settle(new WebMQError('E_DISCONNECTED', { detail: pending.id }))
    }
  }

  /** Rejects all pending publishes. */
  close(error: WebMQError): void {
    for (const pending of this.#pending.values()) pending.settle(error)
    clearTimeout(this.#timer)
    this.#timerAtMs = Infinity
    this.#resume()
  }

  /** Handles an answer. Returns whether it belongs to a publish. */
  answer(message: Extract<ServerMessage, { verb: 'ok' | 'error' }>): boolean {
    const pending = this.#pending.get(message.id ?? '')
    if (!pending) return false
    if (message.verb === 'error') {
      if (message.code === 'E_RATE_LIMIT' && pending.whenOffline === 'queue') this.#pause(pending, message.retryAfterMs)
      else pending.settle(errorOfServer(message))
    } else {
      this.#pauses = 0
      pending.settle({ id: pending.id, duplicate: !!message.duplicate, position: message.position })
    }
    return true
  }

  #enqueue(pending: Pending): void {
    const { id, whenOffline } = pending
    if (whenOffline === 'drop') pending.settle({ id, duplicate: false, dropped: true })
    else if (whenOffline === 'reject') pending.settle(new WebMQError('E_OFFLINE', { detail: id }))
    else {
      this.#wait(pending)
      const { maxMessages, maxBytes } = this.#options
      const limit =
        this.#waitingCount > maxMessages
          ? `maxMessages ${maxMessages}`
          : this.#waitingBytes > maxBytes && `maxBytes ${maxBytes}`
      if (limit) {
        const [oldest = pending] = this.#pending.values()
        const seconds = Math.round((nowMs() - oldest.createdAtMs) / 1_000)
        pending.settle(full(`${limit}, the first has waited for ${seconds} s`))
      }
    }
  }

  /** The server wants no more for now. Later messages wait behind it, so that the order is kept. */
  #pause(pending: Pending, retryAfterMs = 0): void {
    this.#wait(pending)
    if (this.#pauseTimer !== undefined) return
    // At least half of the limit: an immediate attempt would be refused too.
    const { minMs } = this.#options
    const waitMs = Math.max(retryAfterMs, minMs / 2 + backoffMs(this.#pauses++, this.#options))
    this.#pauseTimer = setTimeout(() => this.#flush(), Math.min(waitMs, MAX_TIMER_MS))
  }

  #resume(): void {
    clearTimeout(this.#pauseTimer)
    this.#pauseTimer = undefined
  }

  #flush(): void {
    this.#resume()
    for (const pending of this.#pending.values()) if (!pending.isSent) this.#send(pending)
  }

  #createId(): string {
    this.#name ??= randomName()
    return `${this.#name}-${++this.#lastId}`
  }

  #wait(pending: Pending): void {
    pending.isSent = false
    pending.bytes ||= wireBytes(pending.message.payload)
    this.#waitingCount++
    this.#waitingBytes += pending.bytes
    this.#expire(pending, pending.createdAtMs + this.#options.maxAgeMs)
  }

  #stopWaiting(pending: Pending): void {
    if (pending.isSent) return
    pending.isSent = true
    this.#waitingCount--
    this.#waitingBytes -= pending.bytes
  }

  #send(pending: Pending): void {
    const { id, message, timeoutMs } = pending
    const { key, payload } = message
    const error =
      tooLarge('E_KEY_INVALID', key, this.#limits?.maxKeyBytes) ??
      tooLarge('E_PAYLOAD_TOO_LARGE', payload, this.#limits?.maxPayloadBytes)
    if (error) {
      pending.settle(error)
      return
    }
    this.#stopWaiting(pending)
    try {
      this.#sender.send(encodePublish(message))
    } catch (cause) {
      // One message that cannot be sent must not keep others from being sent.
      pending.settle(cause instanceof WebMQError ? cause : new WebMQError('E_MESSAGE_INVALID', { cause }))
      return
    }
    if (message.id === undefined) pending.settle({ id, duplicate: false })
    else this.#expire(pending, nowMs() + timeoutMs)
  }

  /** One timer for all, set to the earliest deadline known at that time. */
  #expire(pending: Pending, deadlineMs: number): void {
    pending.deadlineMs = deadlineMs
    if (deadlineMs >= this.#timerAtMs) return
    clearTimeout(this.#timer)
    this.#timerAtMs = deadlineMs
    this.#timer = setTimeout(() => this.#sweep(), Math.min(deadlineMs - nowMs(), MAX_TIMER_MS))
  }

  #sweep(): void {
    this.#timerAtMs = Infinity
    const now = nowMs()
    for (const pending of this.#pending.values()) {
      const { id, deadlineMs, isSent } = pending
      if (deadlineMs > now) this.#expire(pending, deadlineMs)
      else {
        const detail = `${id} ${isSent ? 'unanswered' : 'unsent'}`
        pending.settle(new WebMQError('E_TIMEOUT', { detail }))
      }
    }
  }
}

function full(detail: string): WebMQError {
  return new WebMQError('E_QUEUE_FULL', { detail })
}

/** A UTF-16 unit takes at most three bytes: bytes are counted only near the limit. */
function tooLarge(code: ErrorCode, text: WirePayload, maxBytes = Infinity): WebMQError | undefined {
  if (text.length * 3 <= maxBytes) return undefined
  const bytes = wireBytes(text)
  return bytes > maxBytes ? new WebMQError(code, { detail: `${bytes} bytes, at most ${maxBytes}` }) : undefined
}
