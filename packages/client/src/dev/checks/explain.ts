import { nowMs } from '../../core/connection/clock.js'
import type { ErrorCode } from '../../protocol/errors.js'

const TOO_LARGE = [
  /^(\d+) > (\d+)$/,
  '$1 bytes, at most $2: a limit of the server, for payloads --max-payload',
] as const

/** Details as a page for production has them, and what a developer reads instead. */
const TEXTS: Readonly<Partial<Record<ErrorCode, readonly (readonly [RegExp, string])[]>>> = {
  E_CONNECT_FAILED: [[/^connectTimeoutMs (\d+)$/, 'not within $1 ms (connectTimeoutMs)']],
  E_DISCONNECTED: [[/^pageshow$/, 'page was restored from the back/forward cache, and browsers end its connection']],
  E_KEY_INVALID: [TOO_LARGE],
  E_PAYLOAD_TOO_LARGE: [TOO_LARGE],
  E_OPTION_INVALID: [
    [/^(url .*)$/, '$1: give ws://, wss://, http:// or https://, or on a page a path such as /ws'],
    [/^WebSocket$/, "no WebSocket: pass that of 'ws'"],
    [/^setup$/, 'call setup({ url }) first'],
  ],
  E_UNSUPPORTED: [[/^state$/, 'state topics']],
  E_CLOSED: [[/^(by close\(\)|\d{4} E_.+)$/, '$1; open() opens it again']],
  E_UNAUTHENTICATED: [[/^token$/, 'set the option `token`']],
  E_QUEUE_FULL: [
    [/^(\d+) in flight$/, '$1 publishes wait for answers: await some before you publish more'],
    [/^bufferedAmount (\d+)$/, '$1 bytes wait for the network: await publishes before you send more'],
  ],
  E_TIMEOUT: [
    [
      /^(.+) unanswered$/,
      '$1 was sent, and no answer came in time: with the same id, within dedupeWindowMs, it is published once',
    ],
    [/^(.+) unsent$/, '$1 was not sent, because there was no connection in time (offlineQueue.maxAgeMs)'],
  ],
}

/** Makes a sentence of a short detail. */
export function explain(code: ErrorCode, detail: string): string {
  const [pattern, text] = TEXTS[code]?.find(([known]) => known.test(detail)) ?? []
  return pattern && text ? detail.replace(pattern, text) : detail
}

/** Says why a queue is full, and how long its first publish has waited. */
export function explainFull(limit: string, waiting: Iterable<{ readonly createdAtMs: number }>): string {
  const sentence = explain('E_QUEUE_FULL', limit)
  const [first] = waiting
  return first
    ? `${sentence}, the first has waited for ${Math.round((nowMs() - first.createdAtMs) / 1_000)} s`
    : sentence
}
