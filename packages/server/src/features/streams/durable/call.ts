import type { IncomingMessage } from 'node:http'
import { RequestRefusal } from '../../../doors/http/api/read-call.js'
import { COMMON_HEADERS } from '../../../doors/http/responses.js'
import type { AddressCall } from '../../../doors/http/stream-call.js'
import type { SharedStreams } from '../shared-streams.js'
import { formatOffset, type ReadOffset } from './offsets.js'
import type { StreamView } from './view.js'

export interface StreamCall extends AddressCall {
  readonly streams: SharedStreams
}

export interface ReadQuery {
  readonly offset: ReadOffset
  readonly live: 'long-poll' | 'sse' | undefined
  /** As the reader had it last. */
  readonly cursor: string | undefined
}

/** What writers and pages put there must not run on this server's origin. */
export const STREAM_HEADERS = {
  ...COMMON_HEADERS,
  'cross-origin-resource-policy': 'cross-origin',
  'content-security-policy': "default-src 'none'; sandbox",
}

/** The header of a request that has one value, or none. @throws {RequestRefusal} 400 for a longer one. */
export function headerOf({ headers }: IncomingMessage, name: string, maxChars: number): string | undefined {
  const value = headers[name]
  if (value === undefined) return undefined
  const text = String(value)
  if (text.length > maxChars) throw new RequestRefusal(`the header ${name} is too long`, 400)
  return text
}

/** Where the stream stands, for headers of an answer. */
export function standOf({ id, end, isClosed, defect }: StreamView): Record<string, string> {
  return {
    'stream-next-offset': formatOffset(id, end),
    ...(isClosed ? { 'stream-closed': 'true' } : undefined),
    ...(defect === undefined ? undefined : { 'stream-status': defect }),
  }
}

/** Aborted when the reader has gone. */
export function goneOf(response: StreamCall['response']): AbortSignal {
  const abort = new AbortController()
  response.once('close', () => abort.abort())
  return abort.signal
}
