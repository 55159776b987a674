import { validateKey, WebMQError } from 'webmq-client/protocol'
import { type Call, type FeatureRoutes, type HandlerContext, RawAnswer } from '../../doors/http/api/handlers/handler.js'
import { checkedKey } from '../../doors/http/api/handlers/read.js'
import { RequestRefusal } from '../../doors/http/api/read-call.js'
import type { AnswerOf } from '../../doors/http/api/route.js'
import type { ROUTES } from '../../doors/http/api/routes.js'
import type { STREAM_WRITE } from '../../doors/http/api/shapes.js'
import { BodyFlow } from '../../doors/http/body-flow.js'
import { defined } from '../../kernel/base/defined.js'
import { HookRefusal } from '../../kernel/base/hook-refusal.js'
import { encodeWithTexts, JsonText } from '../../kernel/base/json-text.js'
import { andThen } from '../../kernel/base/maybe-promise.js'
import { isJson } from '../../kernel/base/parse-json.js'
import type { ValueOf } from '../../kernel/base/shape.js'
import { isListener } from '../../kernel/identity/access.js'
import { isTrusted } from '../../kernel/identity/actor.js'
import { formatPosition } from '../../kernel/ports/position.js'
import { readStream } from './durable/read.js'
import { appendToStream, createStream, deleteStream } from './durable/write.js'
import type { SharedStreams } from './shared-streams.js'
import type { StreamStops } from './stops.js'
import type { StreamReading, Streams, StreamWrite } from './streams.js'
import type { ProcessWriter } from './writer.js'

type Written = AnswerOf<(typeof ROUTES)['writeStream']>

/** A token may end, and a client may fall silent, while nothing comes of it. */
const CHECK_MS = 1_000

export function streamRoutes(
  streams: Streams,
  sharedStreams: SharedStreams,
  stops: StreamStops,
): Pick<FeatureRoutes, 'writeStream' | 'readStream' | 'streamAddress'> {
  return {
    /** Writes one message of a stream, or a whole stream with a body that is used while it arrives. */
    writeStream: async (context, call) => {
      const { body, query } = call
      if (body instanceof BodyFlow) return writeWhole(stops, context, call, body)
      if (query.key !== undefined && query.key !== body.key)
        throw new WebMQError('E_KEY_INVALID', { detail: 'the query and the body name different keys' })
      if (query.meta !== undefined)
        throw new WebMQError('E_PAYLOAD_INVALID', { detail: 'meta is the payload of start' })
      const { key, stream, kind } = body
      const written = await streams.write(context.node.authorOf(call.caller), writeOf(body), 'base64' in body)
      if (kind === 'start' && (await isStoppable(context, call, key))) await stops.answer(key, stream)
      return { stream, duplicate: written.isDuplicate, ...placed(written.position) }
    },
    readStream: (context, call) => {
      const key = checkedKey(context, call)
      const { hooks, node } = context
      return andThen(hooks?.listen(call.caller, 'history', key, true), async () =>
        shownReading(await streams.read(key, false, node.authorOf(call.caller, call.isGone)), call.accept),
      )
    },
    streamAddress: {
      read: (call) => readStream({ ...call, streams: sharedStreams }),
      create: (call) => createStream({ ...call, streams: sharedStreams }),
      append: (call) => appendToStream({ ...call, streams: sharedStreams }),
      delete: (call) => deleteStream({ ...call, streams: sharedStreams }),
    },
  }
}

async function writeWhole(
  stops: StreamStops,
  context: HandlerContext,
  call: Call<'writeStream'>,
  flow: BodyFlow,
): Promise<Written> {
  const { key } = call.query
  if (key === undefined) throw new WebMQError('E_KEY_INVALID', { detail: 'name the key in the query' })
  validateKey(key)
  const { node } = context
  const meta = metaOf(call.query.meta)
  const writer = await stops.begin(node.authorOf(call.caller), key, meta, await isStoppable(context, call, key))
  try {
    flow.open()
    await pour(context, call, flow, writer)
  } catch (error) {
    if (!writer.isStopped) {
      // What has broken it is told already.
      if (!writer.signal.aborted) await writer.fail(error)
      throw error
    }
  }
  await writer.end()
  return { stream: writer.id, status: writer.isStopped ? 'stop' : 'end', ...placed(writer.position) }
}

/** Who may not listen takes no requests of the key either. */
async function isStoppable({ hooks }: HandlerContext, { caller }: Call<'writeStream'>, key: string): Promise<boolean> {
  if (!isListener(caller, key)) return false
  try {
    await hooks?.listen(caller, 'listen', key, false)
    return true
  } catch (error) {
    if (error instanceof HookRefusal) return false
    throw error
  }
}

/** Appends the body, one piece at a time: what arrives meanwhile is the next piece, and what does not fit waits with its sender. */
async function pour(
  { node, options }: HandlerContext,
  { caller, pay }: Call<'writeStream'>,
  flow: BodyFlow,
  writer: ProcessWriter,
): Promise<void> {
  const decoder = flow.isText ? new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }) : undefined
  const ended = new AbortController()
  const stop = () => ended.abort(writer.signal.reason)
  writer.signal.addEventListener('abort', stop)
  const check = () => {
    const { identity } = caller
    if (flow.silentMs > options.streamBodyTimeoutMs) return new WebMQError('E_MESSAGE_TIMEOUT')
    if (isTrusted(caller) || identity === undefined) return undefined
    if (identity.expiresAtMs !== undefined && identity.expiresAtMs <= Date.now())
      return new WebMQError('E_TOKEN_EXPIRED')
    return node.revocations.covers(identity) ? new WebMQError('E_TOKEN_REVOKED') : undefined
  }
  const refuse = () => {
    const refusal = check()
    if (refusal !== undefined) ended.abort(refusal)
  }
  // A timer fires before the sockets are read: this node may have stood still.
  const checks = setInterval(setImmediate, Math.min(CHECK_MS, options.streamBodyTimeoutMs), refuse)
  try {
    if (writer.signal.aborted) stop()
    for (;;) {
      const chunk = await flow.next(ended.signal)
      const piece = decoder === undefined ? chunk : textOf(decoder, chunk)
      if (piece !== undefined) await writer.append(piece)
      if (chunk === undefined) return
      await pay(flow.costBytes)
    }
  } finally {
    clearInterval(checks)
    writer.signal.removeEventListener('abort', stop)
  }
}

/** The text of the next bytes; a character that is not complete waits. @throws {WebMQError} `E_PAYLOAD_INVALID`. */
function textOf(decoder: InstanceType<typeof TextDecoder>, bytes: Buffer | undefined): string {
  try {
    return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true })
  } catch (cause) {
    throw new WebMQError('E_PAYLOAD_INVALID', { detail: 'the body is not UTF-8', cause })
  }
}

function metaOf(text: string | undefined): JsonText | undefined {
  if (text !== undefined && !isJson(text)) throw new WebMQError('E_PAYLOAD_INVALID', { detail: 'meta is no JSON' })
  return text === undefined ? undefined : new JsonText(text)
}

function writeOf(write: ValueOf<typeof STREAM_WRITE>): StreamWrite {
  const { key, stream, sequence, kind } = write
  validateKey(key)
  const bytes = 'base64' in write ? Buffer.from(write.base64, 'base64') : undefined
  const json = 'payload' in write && write.payload !== undefined ? (write.payload as JsonText).text : ''
  return { key, stream, sequence, kind, payload: bytes ?? json }
}

function placed(position: Parameters<typeof formatPosition>[0] | undefined): { readonly position?: string } {
  return position === undefined ? {} : { position: formatPosition(position) }
}

function shownReading({ facts, whole, position, gap }: StreamReading, accept = ''): RawAnswer {
  const [, type] = /(?:^|,)\s*(text\/plain|application\/(?:octet-stream|json))\s*(?:[,;]|$)/i.exec(accept) ?? []
  const head = { ...facts, position: formatPosition(position), ...defined({ gap }) }
  const format = type?.toLowerCase()
  if (format === undefined || format === 'application/json') {
    const content = typeof whole === 'string' ? { text: whole } : { base64: whole && base64Of(whole) }
    return new RawAnswer('application/json; charset=utf-8', `${encodeWithTexts({ ...head, ...content })}\n`, {})
  }
  if (format === 'text/plain' && whole instanceof Uint8Array)
    throw new RequestRefusal('this stream has bytes: accept application/octet-stream', 406)
  const contentType = format === 'text/plain' ? 'text/plain; charset=utf-8' : format
  const { stream, status, isCut } = facts
  const headers = {
    'webmq-position': head.position,
    ...defined({ 'webmq-stream': stream, 'webmq-status': status, 'webmq-cut': isCut && 'true' }),
  }
  return new RawAnswer(contentType, whole ?? '', headers)
}

function base64Of({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('base64')
}
