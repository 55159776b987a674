import { encodePublish } from '../../protocol/encode-client.js'
import { type ErrorCode, WebMQError } from '../../protocol/errors.js'
import type { ServerMessage, SessionLimits, WirePayload } from '../../protocol/messages.js'
import { checkKey, checks } from '../checks.js'
import { backoffMs } from '../connection/backoff.js'
import { nowMs, startAge } from '../connection/clock.js'
import type { Sender } from '../connection/sender.js'
import { errorOfServer } from '../connection/server-error.js'
import { createTimer } from '../connection/timer.js'
import type { ResolvedOptions } from '../options.js'
import type { PublishOptions, PublishResult } from '../types.js'
import { encodePayload, wireBytes } from './payload.js'
import { randomName } from './random-name.js'

/** A publish that has not settled: it waits for a connection or for its acknowledgement. */
interface Pending {
  /** The message id. */
  readonly id: string
  /** Whether it waits for a connection, instead of failing without one. */
  readonly isKept: boolean
  readonly createdAtMs: number
  isSent: boolean
  /** Since it was first sent; absent while the server cannot have it. */
  ageMs?: (() => number) | undefined
  /** Makes it wait for a connection. */
  wait(): void
  send(): void
  settle(outcome: PublishResult | WebMQError): void
}

/**
 * Limit of the publishes that wait for acknowledgements on a live connection. Limits memory if a caller never awaits.
 */
const MAX_IN_FLIGHT = 16_384

/** Publishes sent after the server's rate limit; each answer lets one more go. All at once would be refused again. */
const MIN_WINDOW = 8

/** No server means less: it is not obeyed. */
const MIN_RETRY_MS = 50

/** Limit of the bytes in the socket's buffer. Limits memory if the network is slower than the app. */
const MAX_SOCKET_BYTES = 16_777_216

/**
 * Publishes messages in call order, and keeps them until they are acknowledged.
 *
 * Each pending publish is either sent or not. A lost connection makes all of them unsent; the next one sends them again
 * with the same ids, unless the server would not know a second copy any more.
 */
export interface Publishes {
  /** Number of publishes that wait for a connection. */
  readonly queueLength: number
  /** Resolves when no publish is pending, or after `maxMs`. */
  idle(maxMs: number): Promise<void>
  /** Publishes a message. The payload has been encoded, or copied, when this returns. */
  publish(key: string, content: unknown, options: PublishOptions): Promise<PublishResult>
  /** A connection is live and listens again: send the waiting messages, in order. */
  up(limits: SessionLimits): void
  /** The connection is lost: unacknowledged messages are sent again later, unless their caller chose otherwise. */
  down(): void
  /** Rejects all pending publishes. */
  close(error: WebMQError): void
  /** Handles an answer. Returns whether it belongs to a publish. */
  answer(message: Extract<ServerMessage, { verb: 'ok' | 'error' }>): boolean
}

/** @param onQueue Called when {@link Publishes.queueLength} has changed. */
export function createPublishes(options: ResolvedOptions, sender: Sender, onQueue: () => void): Publishes {
  const { codec, maxAgeMs, minMs } = options
  const all = new Map<string, Pending>()
  /** Part of every message id; not made before the first, because a server that renders pages needs none. */
  let name: string | undefined
  /** Set while publishes that would be queued wait for the server's rate limit. */
  let isPaused = false
  const pauseTimer = createTimer()
  let pauses = 0
  /** Most unanswered publishes, until nothing waits after a pause. */
  let window = Infinity
  let onIdle: (() => void) | undefined
  let limits: SessionLimits | undefined
  let waitingCount = 0
  let waitingBytes = 0
  let lastId = 0

  function publish(key: string, content: unknown, given: PublishOptions): Promise<PublishResult> {
    return new Promise((resolve, reject) => {
      const {
        ack,
        id = createId(),
        echo = true,
        ephemeral,
        signal,
        timeoutMs = options.ackTimeoutMs,
        whenOffline = options.whenOffline,
      } = given
      checkKey(key)
      checks.publish?.(given, id, timeoutMs)
      const requestId = `p${++lastId}`
      const isAcknowledged = ack !== 'none'
      const payload = encodePayload(content, codec)
      const frame = encodePublish({
        id: isAcknowledged ? requestId : undefined,
        key,
        messageId: id,
        echo,
        ephemeral: ephemeral || undefined,
        payload,
      })
      let bytes = 0
      const timer = createTimer()
      const expired = () => {
        const detail = `${id} ${pending.ageMs ? 'unanswered' : 'unsent'}`
        pending.settle(new WebMQError('E_TIMEOUT', { detail }))
      }
      const stopWaiting = () => {
        if (pending.isSent) return
        pending.isSent = true
        waitingCount--
        waitingBytes -= bytes
        onQueue()
      }
      const refuse = (limit: string) => {
        const detail = checks.full?.(limit, all.values()) ?? limit
        pending.settle(new WebMQError('E_QUEUE_FULL', { detail }))
      }
      const abort = () => pending.settle(new WebMQError('E_ABORTED', { detail: id }))
      const pending: Pending = {
        id,
        isKept: whenOffline === 'queue',
        createdAtMs: nowMs(),
        isSent: true,
        wait: () => {
          pending.isSent = false
          bytes ||= wireBytes(payload)
          waitingCount++
          waitingBytes += bytes
          onQueue()
          timer(expired, pending.createdAtMs + maxAgeMs - nowMs())
        },
        send: () => {
          if (isForgotten(pending, limits)) return expired()
          const error =
            tooLarge('E_KEY_INVALID', key, limits?.maxKeyBytes) ??
            tooLarge('E_PAYLOAD_TOO_LARGE', payload, limits?.maxPayloadBytes)
          if (error) {
            pending.settle(error)
            return
          }
          stopWaiting()
          try {
            sender.send(frame, isAcknowledged)
          } catch (cause) {
            // One message that cannot be sent must not keep others from being sent.
            pending.settle(new WebMQError('E_MESSAGE_INVALID', { cause }))
            return
          }
          pending.ageMs ??= startAge()
          if (isAcknowledged) timer(expired, timeoutMs)
          else pending.settle({ id, duplicate: false })
        },
        settle: (outcome) => {
          timer()
          signal?.removeEventListener('abort', abort)
          stopWaiting()
          all.delete(requestId)
          if (outcome instanceof WebMQError) reject(outcome)
          else resolve(outcome)
          if (all.size === 0) onIdle?.()
          if (window < Infinity && !isPaused) flush()
        },
      }
      if (signal?.aborted) {
        abort()
        return
      }
      signal?.addEventListener('abort', abort)
      all.set(requestId, pending)
      // After a pause, later messages wait behind those that were refused.
      if (sender.isLive && !(window < Infinity && pending.isKept)) {
        if (all.size > MAX_IN_FLIGHT) refuse(`${MAX_IN_FLIGHT} in flight`)
        else if (sender.bufferedBytes > MAX_SOCKET_BYTES) refuse(`bufferedAmount ${MAX_SOCKET_BYTES}`)
        else pending.send()
      } else if (whenOffline === 'drop') pending.settle({ id, duplicate: false, dropped: true })
      else if (whenOffline === 'reject') pending.settle(new WebMQError('E_OFFLINE', { detail: id }))
      else {
        pending.wait()
        if (waitingCount > options.maxMessages) refuse(`maxMessages ${options.maxMessages}`)
        else if (waitingBytes > options.maxBytes) refuse(`maxBytes ${options.maxBytes}`)
      }
    })
  }

  /** The server wants no more for now. Later messages wait behind it, so that the order is kept. */
  function pause(pending: Pending, retryAfterMs = 0): void {
    pending.ageMs = undefined
    pending.wait()
    if (isPaused) return
    window = MIN_WINDOW
    // The server knows its time. Without one, at least half of the limit: an immediate attempt would be refused too.
    flushIn(
      retryAfterMs < MIN_RETRY_MS
        ? minMs / 2 + backoffMs(pauses++, options)
        : retryAfterMs * (1 + options.random() / 4),
    )
  }

  /** What was sent before the pause and is not answered may be refused too. Later messages must not overtake it [P-10.7]. */
  function flushIn(ms: number): void {
    isPaused = true
    pauseTimer(() => {
      for (const { isSent, isKept } of all.values()) if (isSent && isKept) return flushIn(minMs)
      flush()
    }, ms)
  }

  function resume(): void {
    pauseTimer()
    isPaused = false
  }

  function flush(): void {
    resume()
    for (const pending of all.values()) {
      if (pending.isSent) continue
      if (all.size - waitingCount >= window) return
      pending.send()
    }
    window = Infinity
  }

  function createId(): string {
    name ??= randomName()
    return `${name}-${++lastId}`
  }

  return {
    get queueLength() {
      return waitingCount
    },
    publish,
    async idle(maxMs) {
      if (all.size === 0) return
      const before = onIdle
      await new Promise<void>((resolve) => {
        const timer = createTimer()
        timer(resolve, maxMs)
        onIdle = () => {
          timer()
          resolve()
          before?.()
        }
      })
    },
    up(now) {
      limits = now
      pauses = 0
      flush()
    },
    down() {
      resume()
      window = Infinity
      for (const pending of all.values()) {
        if (!pending.isSent) continue
        if (pending.isKept) pending.wait()
        else pending.settle(new WebMQError('E_DISCONNECTED', { detail: pending.id }))
      }
    },
    close(error) {
      window = Infinity
      for (const pending of all.values()) pending.settle(error)
      resume()
    },
    answer(message) {
      const pending = all.get(message.id ?? '')
      if (!pending) return false
      if (message.verb === 'ok') {
        pauses = 0
        window++
        pending.settle({ id: pending.id, duplicate: !!message.duplicate, position: message.position })
      } else if ((message.code === 'E_RATE_LIMIT' || message.retryAfterMs) && pending.isKept) {
        pause(pending, message.retryAfterMs)
      } else pending.settle(errorOfServer(message))
      return true
    },
  }
}

/** Whether the server may have it, and would not know a second copy [P-7.4]. */
function isForgotten({ ageMs }: Pending, limits: SessionLimits | undefined): boolean {
  return !!limits && !!ageMs && ageMs() >= (limits.dedupeMaxIds && limits.dedupeWindowMs)
}

/** A UTF-16 unit takes at most three bytes: bytes are counted only near the limit. */
function tooLarge(code: ErrorCode, text: WirePayload, maxBytes = Infinity): WebMQError | undefined {
  const bytes = text.length * 3 > maxBytes ? wireBytes(text) : 0
  return bytes > maxBytes ? new WebMQError(code, { detail: `${bytes} > ${maxBytes}` }) : undefined
}
