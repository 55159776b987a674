import { nowMs } from '../connection/clock.js'

/** Details as a page for production has them, and what a developer reads instead. */
const TEXTS: readonly (readonly [RegExp, string])[] = [
  [/^connectTimeoutMs (\d+)$/, 'not within $1 ms (connectTimeoutMs)'],
  [/^pageshow$/, 'page was restored from the back/forward cache, and browsers end its connection'],
  [/^(\d+) > (\d+)$/, '$1 bytes, at most $2: a limit of the server, for payloads --max-payload'],
  [/^(url .*)$/, '$1: give ws://, wss://, http:// or https://, or on a page a path such as /ws'],
  [/^(by close\(\)|\d{4} E_.+)$/, '$1; open() opens it again'],
  [/^token$/, 'set the option `token`'],
  [/^(\d+) in flight$/, '$1 publishes wait for answers: await some before you publish more'],
  [/^bufferedAmount (\d+)$/, '$1 bytes wait for the network: await publishes before you send more'],
  [/^(.+) unanswered$/, '$1 was sent, and no answer came in time (timeoutMs): with the same id it is published once'],
  [/^(.+) unsent$/, '$1 was not sent, because there was no connection in time (offlineQueue.maxAgeMs)'],
]

/** Makes a sentence of a short detail. Of a full queue it says how long the first publish has waited. */
export function explain(detail: string, waiting?: Iterable<{ readonly createdAtMs: number }>): string {
  const [pattern, text] = TEXTS.find(([known]) => known.test(detail)) ?? []
  const sentence = pattern && text ? detail.replace(pattern, text) : detail
  const [first] = waiting ?? []
  return first
    ? `${sentence}, the first has waited for ${Math.round((nowMs() - first.createdAtMs) / 1_000)} s`
    : sentence
}
