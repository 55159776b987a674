import { decodePlainPublish, type MessagePart } from './decode-publish.js'
import { isMemberName, isMessageId, isPosition } from './fields.js'
import { MAX_TOKEN_BYTES } from './limits.js'
import type { ClientMessage, ClientVerb, PresenceOp, WriteKind } from './messages.js'
import { ownText } from './own-text.js'
import {
  assertAtMostOne,
  type RawClientMessage,
  readCount,
  readFlag,
  readMembership,
  readOptions,
  readOverflow,
  readRange,
  refusal,
  requireId,
  requireKey,
  requirePattern,
  requireStream,
  split,
} from './raw-client-message.js'
import { decodeUtf8 } from './utf8.js'

type Decoder<V extends ClientVerb> = (raw: RawClientMessage) => Extract<ClientMessage, { verb: V }>

/**
 * Decodes one client message. The kind of frame does not matter for headers and is ignored. The payload of a `publish`
 * is a view of `data`, not a copy, and is neither parsed nor checked. All texts may be kept: none holds its header.
 * @throws {WebMQError} `E_MESSAGE_INVALID`, `E_VERB_UNKNOWN`, `E_KEY_INVALID`, `E_PATTERN_INVALID`,
 * `E_POSITION_INVALID`, with `requestId` if the message had a readable one. It throws nothing else, whatever the bytes.
 */
export function decodeClientMessage(data: Uint8Array, _isBinary: boolean): ClientMessage {
  return decodeClientPart(partOf(data))
}

/** As {@link decodeClientMessage}, for a message among others. */
export function decodeClientPart(part: MessagePart): ClientMessage {
  return decodePlainPublish(part) ?? decodePlainPing(part) ?? decodeAny(part.bytes.subarray(part.start, part.end))
}

/** A message that is all of its bytes. */
export function partOf(bytes: Uint8Array): MessagePart {
  return { bytes, buffer: bytes.buffer, byteOffset: bytes.byteOffset, start: 0, end: bytes.length }
}

/** The general decoder, without the shortcuts for the most frequent messages. */
export function decodeAny(data: Uint8Array): ClientMessage {
  const raw = split(data)
  if (!isVerb(raw.verb)) throw refusal(raw, 'E_VERB_UNKNOWN', raw.verb.slice(0, 32))
  return decoders[raw.verb](raw)
}

const PING = { verb: 'ping' } as const

/** A `ping` as clients send it: four letters and nothing else. */
function decodePlainPing({ bytes, start, end }: MessagePart): ClientMessage | undefined {
  const isPing =
    end - start === 4 &&
    bytes[start] === 0x70 &&
    bytes[start + 1] === 0x69 &&
    bytes[start + 2] === 0x6e &&
    bytes[start + 3] === 0x67
  return isPing ? PING : undefined
}

const decoders: { readonly [V in ClientVerb]: Decoder<V> } = {
  auth(raw) {
    const id = requireId(raw)
    const { body } = raw
    if (body === undefined || body.length === 0 || body.length > MAX_TOKEN_BYTES || !body.every(isVisibleAscii)) {
      throw refusal(raw, 'E_MESSAGE_INVALID', `a token is 1 to ${MAX_TOKEN_BYTES} visible ASCII characters`)
    }
    readOptions(raw, 2)
    return { verb: 'auth', id, token: String.fromCharCode(...body) }
  },
  listen(raw) {
    const id = requireId(raw)
    const pattern = requirePattern(raw)
    const options = readOptions(raw, 3)
    assertAtMostOne(raw, options, 'since', 'last', 'rewind')
    assertAtMostOne(raw, options, 'state', 'last', 'rewind')
    return {
      verb: 'listen',
      id,
      pattern,
      ...readRange(raw, options),
      ...(readFlag(raw, options, 'state') ? { state: true } : {}),
      ...readMembership(raw, options),
      ...readOverflow(options),
      ...(readFlag(raw, options, 'meta') ? { meta: true } : {}),
    }
  },
  unlisten(raw) {
    const [id, pattern] = [requireId(raw), requirePattern(raw)]
    return { verb: 'unlisten', id, pattern, ...readMembership(raw, readOptions(raw, 3)) }
  },
  publish(raw) {
    const { body } = raw
    const id = raw.fields[1] === '-' ? undefined : requireId(raw)
    const key = requireKey(raw)
    const options = readOptions(raw, 3)
    const messageId = options.get('id')
    if (messageId !== undefined && !isMessageId(messageId)) throw refusal(raw, 'E_MESSAGE_INVALID', 'message id')
    const isSilent = readFlag(raw, options, 'noecho')
    const trace = options.get('trace')
    const isEphemeral = readFlag(raw, options, 'ephemeral')
    if (body === undefined) throw refusal(raw, 'E_MESSAGE_INVALID', 'publish needs a payload')
    return {
      verb: 'publish',
      ...(id === undefined ? {} : { id }),
      key,
      ...(messageId === undefined ? {} : { messageId: ownText(messageId) }),
      echo: !isSilent,
      ...(trace === undefined ? {} : { trace: ownText(trace) }),
      ...(isEphemeral ? { ephemeral: true } : {}),
      payload: body,
    }
  },
  history(raw) {
    const id = requireId(raw)
    const key = requireKey(raw)
    const options = readOptions(raw, 3)
    assertAtMostOne(raw, options, 'since', 'rewind', 'before')
    assertAtMostOne(raw, options, 'last', 'limit')
    const limit = readCount(raw, options, 'limit')
    const before = options.get('before')
    if (before !== undefined && !isPosition(before)) throw refusal(raw, 'E_POSITION_INVALID')
    return {
      verb: 'history',
      id,
      key,
      ...readRange(raw, options),
      ...(limit === undefined ? {} : { limit }),
      ...(before === undefined ? {} : { before: ownText(before) }),
      ...(readFlag(raw, options, 'reverse') ? { reverse: true } : {}),
      ...(readFlag(raw, options, 'meta') ? { meta: true } : {}),
    }
  },
  presence(raw) {
    const id = requireId(raw)
    const key = requireKey(raw)
    const options = readOptions(raw, 3)
    const op = options.get('op')
    if (isPresenceOp(op)) return { verb: 'presence', id, key, op }
    const member = options.get('member')
    if (op !== 'enter') throw refusal(raw, 'E_MESSAGE_INVALID', 'op')
    if (member === undefined || !isMemberName(member)) throw refusal(raw, 'E_MESSAGE_INVALID', 'member')
    const message = { verb: 'presence', id, key, op, member: ownText(member) } as const
    if (raw.body === undefined) return message
    const data = decodeUtf8(raw.body)
    if (data === undefined) throw refusal(raw, 'E_MESSAGE_INVALID', 'body is not UTF-8')
    return { ...message, data }
  },
  request(raw) {
    const id = requireId(raw)
    const key = requireKey(raw)
    const withinMs = readCount(raw, readOptions(raw, 3), 'within')
    if (raw.body === undefined) throw refusal(raw, 'E_MESSAGE_INVALID', 'request needs a payload')
    return { verb: 'request', id, key, ...(withinMs === undefined ? {} : { withinMs }), payload: raw.body }
  },
  reply(raw) {
    const id = requireId(raw)
    const isError = readFlag(raw, readOptions(raw, 2), 'error')
    if (raw.body === undefined) throw refusal(raw, 'E_MESSAGE_INVALID', 'reply needs a payload')
    return { verb: 'reply', id, isError, payload: raw.body }
  },
  stream(raw) {
    const [id, key] = [requireId(raw), requireKey(raw)]
    const options = readOptions(raw, 3)
    const sequence = readCount(raw, options, 'seq')
    const kind = WRITE_KINDS.find((known) => known === options.get('kind'))
    if (sequence === undefined) throw refusal(raw, 'E_MESSAGE_INVALID', 'seq')
    if (kind === undefined) throw refusal(raw, 'E_MESSAGE_INVALID', 'kind')
    if (raw.body === undefined) throw refusal(raw, 'E_MESSAGE_INVALID', 'stream needs a payload')
    return { verb: 'stream', id, key, stream: requireStream(raw, options), sequence, kind, payload: raw.body }
  },
  read(raw) {
    const [id, key] = [requireId(raw), requireKey(raw)]
    const options = readOptions(raw, 3)
    const stream = options.has('of') ? requireStream(raw, options) : undefined
    const { since } = readRange(raw, options)
    if ((since === undefined) !== (stream === undefined))
      throw refusal(raw, 'E_MESSAGE_INVALID', 'since and of need each other')
    return { verb: 'read', id, key, ...(since === undefined ? {} : { since, stream }) }
  },
  ping(raw) {
    readOptions(raw, 1)
    return { verb: 'ping' }
  },
}

function isVerb(verb: string): verb is keyof typeof decoders {
  return Object.hasOwn(decoders, verb)
}

const WRITE_KINDS = ['start', 'append', 'beat', 'end', 'fail', 'stop'] as const satisfies WriteKind[]

const PRESENCE_OPS: readonly (string | undefined)[] = ['leave', 'get', 'watch', 'unwatch'] satisfies PresenceOp[]

function isPresenceOp(op: string | undefined): op is PresenceOp {
  return PRESENCE_OPS.includes(op)
}

function isVisibleAscii(byte: number): boolean {
  return byte > 0x20 && byte < 0x7f
}
