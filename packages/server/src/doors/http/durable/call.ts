import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Actor } from '../../../kernel/identity/actor.js'
import type { Author } from '../../../kernel/publishing/author.js'
import { RequestRefusal } from '../api/read-call.js'
import type { ApiNode } from '../api-node.js'
import type { Bodies } from '../body.js'
import type { HttpContext } from '../context.js'
import { COMMON_HEADERS } from '../responses.js'
import { formatOffset, type ReadOffset } from './offsets.js'
import type { StreamView } from './view.js'

export interface StreamCall extends Pick<HttpContext, 'options' | 'hooks'> {
  readonly node: ApiNode
  readonly bodies: Bodies
  readonly charge: (byteCount: number) => void
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly caller: Actor
  /** The caller, as long as it waits for the answer: it writes, and pays for what is read of the log. */
  readonly author: Author
  readonly key: string
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
