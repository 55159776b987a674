import { nowMs } from './clock.js'
import { createTimer } from './timer.js'

/** Answers take less. */
const UNANSWERED_MS = 3_000
/** With {@link UNANSWERED_MS} below the default of `ackTimeoutMs`. */
const UNANSWERED_TIMEOUT_MS = 5_000

/** The shortest interval: a server that asks for less would get as many pings as the processor makes. */
const MIN_INTERVAL_MS = 1_000

/**
 * Detects a connection that is dead but not closed, after a laptop slept or a router lost its state.
 *
 * If nothing was sent, or nothing received, for the interval, it sends `ping`; also if nothing arrives for a while after a
 * message, so that a publish on a dead network joins the queue before its time is over. If then nothing at all arrives in time,
 * it reports a timeout. Silence alone does not count, because timers of a hidden page fire late.
 */
export interface Heartbeat {
  /** The client has sent a message. @param isAnswered Whether the server answers it. */
  sent(isAnswered?: boolean): void
  /** A message has arrived: the connection is alive. */
  alive(): void
  /** Sends a ping now, with a shorter timeout: after a wake-up the app should not wait for the usual interval. */
  probe(timeoutMs: number): void
  close(): void
}

/**
 * @param intervalMs 0: the server wants no heartbeat [P-9.2]; probes still work.
 * @param onTimeout Nothing arrived in time after a ping.
 */
export function createHeartbeat(
  intervalMs: number,
  timeoutMs: number,
  sendPing: () => void,
  onTimeout: () => void,
): Heartbeat {
  const pauseMs = intervalMs ? Math.max(intervalMs, MIN_INTERVAL_MS) : Infinity
  const timer = createTimer()
  let sentAtMs = nowMs()
  let aliveAtMs = sentAtMs
  let isWaiting = false
  /** When the first message was sent since the last one that has arrived. */
  let unansweredSinceMs = Infinity
  let dueAtMs = 0

  function check(): void {
    const silentAtMs = Math.min(sentAtMs, aliveAtMs) + pauseMs
    const unansweredAtMs = unansweredSinceMs + UNANSWERED_MS
    dueAtMs = Math.min(silentAtMs, unansweredAtMs)
    const dueMs = dueAtMs - nowMs()
    if (dueMs <= 0) ping(silentAtMs < unansweredAtMs ? timeoutMs : Math.min(UNANSWERED_TIMEOUT_MS, timeoutMs))
    else timer(check, dueMs)
  }

  function ping(answerMs: number): void {
    isWaiting = true
    timer(onTimeout, answerMs)
    sendPing()
  }

  check()
  return {
    sent: (isAnswered) => {
      sentAtMs = nowMs()
      if (!isAnswered || isWaiting || unansweredSinceMs < Infinity) return
      unansweredSinceMs = sentAtMs
      if (sentAtMs + UNANSWERED_MS < dueAtMs) check()
    },
    alive: () => {
      aliveAtMs = nowMs()
      unansweredSinceMs = Infinity
      if (isWaiting) {
        isWaiting = false
        check()
      }
    },
    probe: (answerMs) => ping(Math.min(answerMs, timeoutMs)),
    close: timer,
  }
}
