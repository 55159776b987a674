import { checkKey, checks, explain } from '../checks.js'
import type { WhenOffline } from '../client-options.js'
import { backoffMs } from '../connection/backoff.js'
import { nowMs } from '../connection/clock.js'
import type { Frame, Sender } from '../connection/sender.js'
import { errorOfServer } from '../connection/server-error.js'
import { MAX_TIMER_MS, type ResolvedOptions } from '../options.js'
import { encodePublish } from '../protocol/encode-client.js'
import { type ErrorCode, WebMQError } from '../protocol/errors.js'
import type { ServerMessage, SessionLimits, WirePayload } from '../protocol/messages.js'
import type { PublishOptions, PublishResult } from '../types.js'
import { encodePayload, wireBytes } from './payload.js'
import { randomName } from './random-name.js'

/** A publish that has not settled: it waits for a connection or for its acknowledgement. */
interface Pending {
  /** The message id. */
  readonly id: string
  readonly key: string
  readonly frame: Frame
  readonly payload: WirePayload
  readonly isAcknowledged: boolean
  readonly whenOffline: WhenOffline
  readonly timeoutMs: number
  readonly createdAtMs: number
  /** Payload bytes while it waits for a connection. */
  bytes: number
  isSent: boolean
  timer?: ReturnType<typeof setTimeout>
  settle(outcome: PublishResult | WebMQError): void
}

/**
 * Limit of the publishes that wait for acknowledgements on a live connection. Limits memory if a caller never awaits.
 */
const MAX_IN_FLIGHT = 16_384

/** So many are sent after the server's rate limit, and one more with each answer. All at once would be refused again. */
const MIN_WINDOW = 8

/** No server means less: it is not obeyed. */
const MIN_RETRY_MS = 50

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
  /** So many may be unanswered, until nothing waits after a pause. */
  #window = Infinity
  readonly #onQueue: () => void
  #onIdle: (() => void) | undefined
  #limits: SessionLimits | undefined
  /** Number of publishes that wait for a connection. */
  waitingCount = 0
  #waitingBytes = 0
  #lastId = 0

  /** @param onQueue Called when {@link waitingCount} has changed. */
  constructor(options: ResolvedOptions, sender: Sender, onQueue: () => void) {
    this.#options = options
    this.#sender = sender
    this.#onQueue = onQueue
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
  publish(key: string, content: unknown, options: PublishOptions): Promise<PublishResult> {
    return new Promise((resolve, reject) => {
      const { codec, ackTimeoutMs } = this.#options
      const { ack, id = this.#createId(), echo = true, ephemeral, signal, timeoutMs = ackTimeoutMs } = options
      checkKey(key)
      checks.publish?.(options, id, timeoutMs)
      const requestId = `p${++this.#lastId}`
      const isAcknowledged = ack !== 'none'
      const payload = encodePayload(content, codec)
      const abort = () => pending.settle(new WebMQError('E_ABORTED', { detail: id }))
      const pending: Pending = {
        id,
        key,
        frame: encodePublish({
          id: isAcknowledged ? requestId : undefined,
          key,
          messageId: id,
          echo,
          ephemeral: ephemeral || undefined,
          payload,
        }),
        payload,
        isAcknowledged,
        whenOffline: options.whenOffline ?? this.#options.whenOffline,
        timeoutMs,
        createdAtMs: nowMs(),
        bytes: 0,
        isSent: true,
        settle: (outcome) => {
          clearTimeout(pending.timer)
          signal?.removeEventListener('abort', abort)
          this.#stopWaiting(pending)
          this.#pending.delete(requestId)
          if (outcome instanceof WebMQError) reject(outcome)
          else resolve(outcome)
          if (this.#pending.size === 0) this.#onIdle?.()
          if (this.#window < Infinity && this.#pauseTimer === undefined) this.#flush()
        },
      }
      if (signal?.aborted) {
        abort()
        return
      }
      signal?.addEventListener('abort', abort)
      this.#pending.set(requestId, pending)
      this.#begin(pending)
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
    this.#window = Infinity
    for (const pending of this.#pending.values()) {
      if (!pending.isSent) continue
      if (pending.whenOffline === 'queue') this.#wait(pending)
      else pending.settle(new WebMQError('E_DISCONNECTED', { detail: pending.id }))
    }
  }

  /** Rejects all pending publishes. */
  close(error: WebMQError): void {
    this.#window = Infinity
    for (const pending of this.#pending.values()) pending.settle(error)
    this.#resume()
  }

  /** Handles an answer. Returns whether it belongs to a publish. */
  answer(message: Extract<ServerMessage, { verb: 'ok' | 'error' }>): boolean {
    const pending = this.#pending.get(message.id ?? '')
    if (!pending) return false
    if (message.verb === 'ok') {
      this.#pauses = 0
      this.#window++
      pending.settle({ id: pending.id, duplicate: !!message.duplicate, position: message.position })
    } else if ((message.code === 'E_RATE_LIMIT' || message.retryAfterMs) && pending.whenOffline === 'queue') {
      this.#pause(pending, message.retryAfterMs)
    } else pending.settle(errorOfServer(message))
    return true
  }

  #begin(pending: Pending): void {
    const { id, whenOffline } = pending
    const { isLive, bufferedBytes } = this.#sender
    const { maxMessages, maxBytes } = this.#options
    const isHeld = this.#pauseTimer !== undefined || this.#window < Infinity
    if (isLive && !(isHeld && whenOffline === 'queue')) {
      if (this.#pending.size > MAX_IN_FLIGHT) this.#refuse(pending, `${MAX_IN_FLIGHT} in flight`)
      else if (bufferedBytes > MAX_SOCKET_BYTES) this.#refuse(pending, `bufferedAmount ${MAX_SOCKET_BYTES}`)
      else this.#send(pending)
    } else if (whenOffline === 'drop') pending.settle({ id, duplicate: false, dropped: true })
    else if (whenOffline === 'reject') pending.settle(new WebMQError('E_OFFLINE', { detail: id }))
    else {
      this.#wait(pending)
      if (this.waitingCount > maxMessages) this.#refuse(pending, `maxMessages ${maxMessages}`)
      else if (this.#waitingBytes > maxBytes) this.#refuse(pending, `maxBytes ${maxBytes}`)
    }
  }

  #refuse(pending: Pending, limit: string): void {
    pending.settle(new WebMQError('E_QUEUE_FULL', { detail: explain(limit, this.#pending.values()) }))
  }

  /** The server wants no more for now. Later messages wait behind it, so that the order is kept. */
  #pause(pending: Pending, retryAfterMs = 0): void {
    this.#wait(pending)
    if (this.#pauseTimer !== undefined) return
    this.#window = MIN_WINDOW
    const { minMs, random } = this.#options
    // The server knows its time. Without one, at least half of the limit: an immediate attempt would be refused too.
    this.#flushIn(
      retryAfterMs < MIN_RETRY_MS
        ? minMs / 2 + backoffMs(this.#pauses++, this.#options)
        : retryAfterMs * (1 + random() / 4),
    )
  }

  /** What was sent before the pause and is not answered may be refused too. Later messages must not overtake it [P-10.7]. */
  #flushIn(ms: number): void {
    this.#pauseTimer = setTimeout(
      () => {
        for (const pending of this.#pending.values()) {
          if (pending.isSent && pending.whenOffline === 'queue') return this.#flushIn(this.#options.minMs)
        }
        this.#flush()
      },
      Math.min(ms, MAX_TIMER_MS),
    )
  }

  #resume(): void {
    clearTimeout(this.#pauseTimer)
    this.#pauseTimer = undefined
  }

  #flush(): void {
    this.#resume()
    for (const pending of this.#pending.values()) {
      if (pending.isSent) continue
      if (this.#pending.size - this.waitingCount >= this.#window) return
      this.#send(pending)
    }
    this.#window = Infinity
  }

  #createId(): string {
    this.#name ??= randomName()
    return `${this.#name}-${++this.#lastId}`
  }

  #wait(pending: Pending): void {
    pending.isSent = false
    pending.bytes ||= wireBytes(pending.payload)
    this.waitingCount++
    this.#waitingBytes += pending.bytes
    this.#onQueue()
    this.#expire(pending, pending.createdAtMs + this.#options.maxAgeMs - nowMs())
  }

  #stopWaiting(pending: Pending): void {
    if (pending.isSent) return
    pending.isSent = true
    this.waitingCount--
    this.#waitingBytes -= pending.bytes
    this.#onQueue()
  }

  #send(pending: Pending): void {
    const { id, key, frame, payload, isAcknowledged, timeoutMs } = pending
    const error =
      tooLarge('E_KEY_INVALID', key, this.#limits?.maxKeyBytes) ??
      tooLarge('E_PAYLOAD_TOO_LARGE', payload, this.#limits?.maxPayloadBytes)
    if (error) {
      pending.settle(error)
      return
    }
    this.#stopWaiting(pending)
    try {
      this.#sender.send(frame, isAcknowledged)
    } catch (cause) {
      // One message that cannot be sent must not keep others from being sent.
      pending.settle(new WebMQError('E_MESSAGE_INVALID', { cause }))
      return
    }
    if (isAcknowledged) this.#expire(pending, timeoutMs)
    else pending.settle({ id, duplicate: false })
  }

  #expire(pending: Pending, inMs: number): void {
    clearTimeout(pending.timer)
    pending.timer = setTimeout(
      () => {
        const detail = explain(`${pending.id} ${pending.isSent ? 'unanswered' : 'unsent'}`)
        pending.settle(new WebMQError('E_TIMEOUT', { detail }))
      },
      Math.min(inMs, MAX_TIMER_MS),
    )
  }
}

/** A UTF-16 unit takes at most three bytes: bytes are counted only near the limit. */
function tooLarge(code: ErrorCode, text: WirePayload, maxBytes = Infinity): WebMQError | undefined {
  const bytes = text.length * 3 > maxBytes ? wireBytes(text) : 0
  return bytes > maxBytes ? new WebMQError(code, { detail: explain(`${bytes} > ${maxBytes}`) }) : undefined
}
