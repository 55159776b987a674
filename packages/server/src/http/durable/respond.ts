import type { IncomingMessage, ServerResponse } from 'node:http'
import { validateKey } from 'webmq-client/protocol'
import type { Actor } from '../../identity/actor.js'
import { assertKeyWords } from '../../ports/word-limits.js'
import { RequestRefusal } from '../api/read-call.js'
import { hasBody } from '../body.js'
import { answerPreflight } from '../responses.js'
import type { StreamCall } from './call.js'
import { readStream } from './read.js'
import { appendToStream, createStream, deleteStream } from './write.js'

const METHODS = ['GET', 'HEAD', 'PUT', 'POST', 'DELETE']
const METHOD_NOT_ALLOWED = 405
const BAD_REQUEST = 400
/** What pages may send and read, beside what they may at other addresses. */
const SENT =
  ', if-none-match, producer-epoch, producer-id, producer-seq, stream-closed, stream-expires-at, stream-seq, stream-ttl'
const READ = [
  ...['etag', 'location', 'retry-after', 'producer-epoch', 'producer-expected-seq', 'producer-received-seq'],
  ...['producer-seq', 'stream-closed', 'stream-cursor', 'stream-expires-at', 'stream-next-offset'],
  ...['stream-sse-data-encoding', 'stream-status', 'stream-ttl', 'stream-up-to-date'],
].join(', ')

/** Answers the question of a browser whether a page may write and read streams. */
export function answerStreamPreflight(request: IncomingMessage, response: ServerResponse): void {
  answerPreflight(request, response, METHODS, SENT)
}

/** Answers a request of the protocol Durable Streams 1.0. @param path The key, as it is in the address. */
export async function respondStream(
  context: Pick<StreamCall, 'node' | 'options' | 'hooks' | 'bodies' | 'charge'>,
  request: IncomingMessage,
  response: ServerResponse,
  caller: Actor,
  path: string,
): Promise<void> {
  if (response.hasHeader('access-control-allow-origin')) response.setHeader('access-control-expose-headers', READ)
  response.setHeader('cross-origin-resource-policy', 'cross-origin')
  const key = keyOf(path)
  assertKeyWords(key, context.options)
  const call: StreamCall = { ...context, request, response, caller, key }
  const { method = '' } = request
  // No body is wanted, so none is waited for.
  if (method !== 'PUT' && method !== 'POST' && hasBody(request)) response.shouldKeepAlive = false
  if (method === 'GET' || method === 'HEAD') return await readStream(call)
  if (method === 'PUT') return await createStream(call)
  if (method === 'POST') return await appendToStream(call)
  if (method === 'DELETE') return await deleteStream(call)
  response.setHeader('allow', METHODS.join(', '))
  throw new RequestRefusal(`the method of a stream is ${METHODS.join(', ')}`, METHOD_NOT_ALLOWED)
}

function keyOf(path: string): string {
  try {
    const key = decodeURIComponent(path)
    validateKey(key)
    return key
  } catch (cause) {
    if (!(cause instanceof URIError)) throw cause
    throw new RequestRefusal('the path is no key', BAD_REQUEST)
  }
}
