import { isPosition, ownText, refusalOf, validateKey, validatePattern, WebMQError } from 'webmq-client/protocol'
import { parsePosition } from '../../kernel/ports/position.js'
import { isReserved } from '../../kernel/ports/reserved-keys.js'
import type { UpgradeRequest } from '../../kernel/ports/transport.js'
import { assertKeyWords, assertPatternWords, isSearch } from '../../kernel/ports/word-limits.js'
import type { RangeOptions } from '../../kernel/replay/replay.js'
import type { SessionLimits } from '../../kernel/session/effective-limits.js'
import type { StreamCursor } from '../../kernel/session/gateway/event-streams.js'

/** What a client asks for with an event stream. */
export interface StreamRequest {
  /** Each once; at least one. */
  readonly patterns: readonly string[]
  readonly range: RangeOptions
  /** Its messages come with who published them, and when. */
  readonly meta: boolean
  /** Present: it follows the stream of the only pattern, a key. */
  readonly follows?: { readonly cursor: StreamCursor | undefined }
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const PARAMETERS: ReadonlySet<string> = new Set(['listen', 'since', 'last', 'rewind', 'meta', 'stream'])

/**
 * Reads `listen`, `since`, `last`, `rewind` and `meta` of the query, and `Last-Event-ID`, which wins: a browser repeats the query of
 * its first request when it reconnects. Parameters of others are ignored.
 * @throws {WebMQError} `E_MESSAGE_INVALID`, `E_PATTERN_INVALID`, `E_KEY_INVALID`, `E_POSITION_INVALID`, `E_LISTEN_LIMIT`, `E_FORBIDDEN`,
 *   `E_STREAM_ENDED`.
 */
export function readStreamRequest(
  request: Pick<UpgradeRequest, 'query' | 'header'>,
  limits: SessionLimits,
): StreamRequest {
  const parameters = new URLSearchParams(request.query)
  for (const name of PARAMETERS) {
    if (name !== 'listen' && parameters.getAll(name).length > 1) throw invalid(`${name} is given twice`)
  }
  const key = parameters.get('stream')
  if (key !== null) {
    if (parameters.has('listen')) throw invalid('stream and listen exclude each other')
    return followRequest(ownText(key), request.header('last-event-id'), limits)
  }
  const patterns = [...new Set(parameters.getAll('listen'))].map((pattern) => ownText(pattern))
  if (patterns.length === 0) throw invalid('name at least one pattern, as in ?listen=chat.%23')
  if (patterns.length > limits.maxListensPerConnection) {
    throw new WebMQError('E_LISTEN_LIMIT', {
      detail: `at most ${limits.maxListensPerConnection} (maxListensPerConnection)`,
    })
  }
  for (const pattern of patterns) {
    validatePattern(pattern)
    assertPatternWords(pattern, limits)
    if (isReserved(pattern)) throw new WebMQError('E_FORBIDDEN', { detail: `listen ${pattern}` })
  }
  const { maxSearchListensPerConnection: maxSearches } = limits
  if (patterns.filter(isSearch).length > maxSearches) {
    const detail = `at most ${maxSearches} with a # before the last word (maxSearchListensPerConnection)`
    throw new WebMQError('E_LISTEN_LIMIT', { detail })
  }
  const meta = parameters.has('meta')
  return { patterns, range: readRange(parameters, request.header('last-event-id')), meta }
}

/** @throws {WebMQError} `E_STREAM_ENDED` for a reader that has its end: a browser then asks no more. */
function followRequest(key: string, lastEventId: string | undefined, limits: SessionLimits): StreamRequest {
  validateKey(key)
  assertKeyWords(key, limits, refusalOf)
  if (isReserved(key)) throw new WebMQError('E_FORBIDDEN', { detail: `listen ${key}` })
  const [, stream, sequence, length, end] = /^([\w-]{1,36}):(\d{1,15}):(\d{1,15})(:end)?$/.exec(lastEventId ?? '') ?? []
  if (end !== undefined) throw new WebMQError('E_STREAM_ENDED')
  const cursor = stream === undefined ? undefined : { stream, sequence: Number(sequence), length: Number(length) }
  return { patterns: [key], range: {}, meta: false, follows: { cursor } }
}

function readRange(parameters: URLSearchParams, lastEventId: string | undefined): RangeOptions {
  const since = lastEventId || parameters.get('since')
  if (since) {
    if (!isPosition(since)) throw new WebMQError('E_POSITION_INVALID')
    parsePosition(since)
    return { since: ownText(since) }
  }
  const [last, rewind] = [parameters.get('last'), parameters.get('rewind')]
  if (last !== null && rewind !== null) throw invalid('last and rewind exclude each other')
  if (last !== null) return { last: readLast(last) }
  return rewind === null ? {} : { rewindMs: readDuration(rewind) }
}

function readLast(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw invalid('last is not a number of messages')
  return Number(text)
}

function readDuration(text: string): number {
  const [, count = '', unit = 'ms'] = /^(\d{1,12})(ms|s|m|h|d)?$/.exec(text) ?? []
  const durationMs = Number(count) * (UNITS_MS[unit] ?? 1)
  if (count === '' || !Number.isSafeInteger(durationMs)) throw invalid('rewind is not a time, such as 30s or 10m')
  return durationMs
}

function invalid(detail: string): WebMQError {
  return new WebMQError('E_MESSAGE_INVALID', { detail })
}
