import type { IncomingMessage, ServerResponse } from 'node:http'
import { ownText, validateKey, WebMQError } from 'webmq-client/protocol'
import type { ObservedAction } from '../../features/observing/observer.js'
import { answerEarly } from '../../kernel/base/answer-early.js'
import type { Actor } from '../../kernel/identity/actor.js'
import { assertKeyWords } from '../../kernel/ports/word-limits.js'
import type { RoutedNode } from './api/handlers/handler.js'
import { RequestRefusal } from './api/read-call.js'
import type { Bodies, BodySender } from './body.js'
import type { Callers } from './caller.js'
import type { HttpContext } from './context.js'
import { allowOrigin, answerPreflight } from './responses.js'
import type { AddressCall } from './stream-call.js'

const METHODS = ['GET', 'HEAD', 'PUT', 'POST', 'DELETE']
/** What pages may send and read, beside what they may at other addresses. */
const SENT =
  ', if-none-match, producer-epoch, producer-id, producer-seq, stream-closed, stream-expires-at, stream-seq, stream-ttl'
const READ = [
  ...['etag', 'location', 'retry-after', 'producer-epoch', 'producer-expected-seq', 'producer-received-seq'],
  ...['producer-seq', 'stream-closed', 'stream-cursor', 'stream-expires-at', 'stream-next-offset'],
  ...['stream-sse-data-encoding', 'stream-status', 'stream-ttl', 'stream-up-to-date'],
].join(', ')

type RespondContext = Pick<HttpContext<RoutedNode>, 'options' | 'hooks' | 'node'> & {
  readonly bodies: Bodies
  readonly callers: Callers
  readonly callerOf: () => Promise<Actor>
  readonly charge: (caller: Actor, byteCount: number) => void
  readonly senderOf: (caller: Actor) => BodySender
}

/**
 * Answers a request of the protocol Durable Streams 1.0.
 * @param path The key, as it is in the address.
 * @param asked What observers are told of a refusal.
 */
export async function respondStream(
  context: RespondContext,
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  asked: { action?: ObservedAction; target?: string | undefined },
): Promise<void> {
  const { method = '' } = request
  asked.action = method === 'GET' || method === 'HEAD' ? 'read' : 'stream'
  asked.target = path
  context.callers.assertOrigin(request)
  response.setHeader('cross-origin-resource-policy', 'cross-origin')
  // No body is wanted, so none is waited for.
  if (method !== 'PUT' && method !== 'POST') answerEarly(request, response)
  if (method === 'OPTIONS') return answerPreflight(request, response, METHODS, SENT)
  allowOrigin(request, response)
  if (response.hasHeader('access-control-allow-origin')) response.setHeader('access-control-expose-headers', READ)
  const caller = await context.callerOf()
  const node = context.node()
  if (node === undefined) throw new WebMQError('E_NOT_RUNNING')
  const key = keyOf(path)
  assertKeyWords(key, context.options)
  const charge = (byteCount: number) => context.charge(caller, byteCount)
  const author = node.authorOf(caller, () => response.destroyed)
  const { options, hooks, bodies } = context
  const sender = context.senderOf(caller)
  const call: AddressCall = { options, hooks, bodies, sender, charge, request, response, caller, author, key }
  const { streamAddress } = await node.routes()
  if (method === 'GET' || method === 'HEAD') return await streamAddress.read(call)
  if (method === 'PUT') return await streamAddress.create(call)
  if (method === 'POST') return await streamAddress.append(call)
  if (method === 'DELETE') return await streamAddress.delete(call)
  response.setHeader('allow', METHODS.join(', '))
  throw new RequestRefusal(`the method of a stream is ${METHODS.join(', ')}`, 405)
}

function keyOf(path: string): string {
  try {
    const key = decodeURIComponent(path)
    validateKey(key)
    // It may be kept: as a part of the address, it would keep the whole.
    return ownText(key)
  } catch (cause) {
    if (!(cause instanceof URIError)) throw cause
    throw new RequestRefusal('the path is no key', 400)
  }
}
