import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeAny, decodeClientMessage, decodeClientPart, partOf } from './decode-client.js'
import { decodePlainPublish } from './decode-publish.js'
import { decodeServerMessage } from './decode-server.js'
import { encodeClientMessage } from './encode-client.js'
import { encodeMessageFrame } from './encode-message.js'
import { WebMQError } from './errors.js'
import { isKey, isPattern } from './keys.js'
import type { ClientMessage } from './messages.js'
import { formatPosition } from './position.js'

const encoder = new TextEncoder()

const idChar = fc.constantFrom(...'ABCXYZabcxyz0189_-')
const id = fc.string({ unit: idChar, minLength: 1, maxLength: 36 }).filter((text) => text !== '-')
const messageId = fc.string({ unit: idChar, minLength: 1, maxLength: 64 })
const position = fc
  .string({ unit: fc.constantFrom(...'aZ09_:.-'), minLength: 1, maxLength: 64 })
  .filter((text) => text !== '-')
const word = fc.oneof(fc.constantFrom('a', 'chat', '42', ''), fc.string({ unit: 'grapheme', maxLength: 6 }))
const key = fc
  .array(word, { minLength: 1, maxLength: 6 })
  .map((words) => words.join('.'))
  .filter(isKey)
const pattern = fc
  .array(fc.oneof(word, fc.constantFrom('*', '#')), { minLength: 1, maxLength: 6 })
  .map((words) => words.join('.'))
  .filter(isPattern)
const payload = fc.uint8Array({ maxLength: 64 })
const count = fc.nat()
const json = fc.json()

const message: fc.Arbitrary<ClientMessage> = fc.oneof(
  fc.record({
    verb: fc.constant('auth' as const),
    id,
    token: fc.string({ unit: fc.constantFrom(...'aZ0.-_'), minLength: 1 }),
  }),
  fc.record(
    { verb: fc.constant('listen' as const), id, pattern, since: position, group: messageId },
    { requiredKeys: ['verb', 'id', 'pattern'] },
  ),
  fc.record({ verb: fc.constant('listen' as const), id, pattern, last: count }),
  fc.record({ verb: fc.constant('listen' as const), id, pattern, rewindMs: count }),
  fc.record({ verb: fc.constant('unlisten' as const), id, pattern }),
  fc.record(
    { verb: fc.constant('publish' as const), id, key, messageId, echo: fc.boolean(), payload },
    { requiredKeys: ['verb', 'key', 'echo', 'payload'] },
  ),
  fc.record(
    {
      verb: fc.constant('history' as const),
      id,
      key,
      since: position,
      last: count,
      reverse: fc.constant(true as const),
    },
    { requiredKeys: ['verb', 'id', 'key'] },
  ),
  fc.record(
    { verb: fc.constant('history' as const), id, key, rewindMs: count, limit: count },
    { requiredKeys: ['verb', 'id', 'key'] },
  ),
  fc.record(
    {
      verb: fc.constant('presence' as const),
      id,
      key,
      op: fc.constant('enter' as const),
      member: messageId,
      data: json,
    },
    { requiredKeys: ['verb', 'id', 'key', 'op', 'member'] },
  ),
  fc.record({
    verb: fc.constant('presence' as const),
    id,
    key,
    op: fc.constantFrom('leave' as const, 'get' as const, 'watch' as const, 'unwatch' as const),
  }),
  fc.record({ verb: fc.constant('ping' as const) }),
)

/** Client messages that are broken in small ways. */
const almostMessage = fc
  .tuple(
    message,
    fc.array(fc.tuple(fc.nat(), fc.constantFrom(0x20, 0x0a, 0x2d, 0x3d, 0x23, 0x2e, 0xc3, 0xff, 0x00)), {
      maxLength: 3,
    }),
  )
  .map(([original, changes]) => {
    const encoded = encodeClientMessage(original)
    const bytes = typeof encoded === 'string' ? encoder.encode(encoded) : encoded
    for (const [at, byte] of changes) bytes[at % bytes.length] = byte
    return bytes
  })

/** Outcome of a call, for comparison. */
function outcomeOf<T>(call: () => T): unknown {
  try {
    return { returned: call() }
  } catch (error) {
    if (!(error instanceof WebMQError)) throw error
    return { code: error.code, requestId: error.requestId, message: error.message }
  }
}

describe('codec', () => {
  it('reads back every client message that it writes', () => {
    fc.assert(
      fc.property(message, (original) => {
        const encoded = encodeClientMessage(original)
        const bytes = typeof encoded === 'string' ? encoder.encode(encoded) : encoded
        expect(decodeClientMessage(bytes, typeof encoded !== 'string')).toEqual(original)
      }),
      { numRuns: 1_000 },
    )
  })

  it('decodes a publish the same way with the shortcut and the general decoder', () => {
    fc.assert(
      fc.property(almostMessage, (bytes) => {
        const plain = decodePlainPublish(partOf(bytes))
        if (plain !== undefined) expect(outcomeOf(() => decodeAny(bytes))).toEqual({ returned: plain })
      }),
      { numRuns: 3_000 },
    )
  })

  it('decodes a message among others as it does alone, wherever it is cut', () => {
    fc.assert(
      fc.property(almostMessage, fc.nat(), fc.nat({ max: 20 }), (all, at, before) => {
        const length = at % (all.length + 1)
        const bytes = new Uint8Array(before + all.length)
        bytes.set(all, before)
        const part = { ...partOf(bytes), start: before, end: before + length }
        expect(outcomeOf(() => decodeClientPart(part))).toEqual(
          outcomeOf(() => decodeClientMessage(all.slice(0, length), true)),
        )
      }),
      { numRuns: 2_000 },
    )
  })

  it('throws nothing but WebMQError, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.oneof(almostMessage, fc.uint8Array({ maxLength: 3_000 })), (bytes) => {
        outcomeOf(() => decodeClientMessage(bytes, true))
        outcomeOf(() => decodeServerMessage(bytes))
      }),
      { numRuns: 2_000 },
    )
  })

  it('writes frames that decode to the published message', () => {
    fc.assert(
      fc.property(
        key,
        fc.option(fc.record({ epoch: position, offset: fc.maxSafeNat(), fingerprint: fc.nat(2 ** 30 - 1) }), {
          nil: undefined,
        }),
        fc.boolean(),
        payload,
        (...args) => {
          const [frameKey, framePosition, replayed, bytes] = args
          expect(decodeServerMessage(encodeMessageFrame(...args))).toEqual({
            verb: 'message',
            key: frameKey,
            ...(framePosition && { position: formatPosition(framePosition) }),
            replayed,
            payload: bytes,
          })
        },
      ),
      { numRuns: 1_000 },
    )
  })
})

describe('decodeClientMessage', () => {
  it('keeps no reference to the memory that it reads', () => {
    // Symptom: messages arrive under another key. Cause: a key cache that keeps a view of the receive buffer.
    const buffer = Buffer.from('publish 1 first.key\n1')
    const first = decodeClientMessage(buffer, false)
    buffer.write('other', 'publish 1 '.length)
    const second = decodeClientMessage(buffer, false)
    buffer.write('first', 'publish 1 '.length)
    const third = decodeClientMessage(buffer, false)
    expect([first, second, third]).toMatchObject([{ key: 'first.key' }, { key: 'other.key' }, { key: 'first.key' }])
  })

  it('gives the payload as a view', () => {
    const bytes = encoder.encode('publish - a\n123')
    const decoded = decodeClientMessage(bytes, false)
    expect(decoded.verb === 'publish' && decoded.payload instanceof Uint8Array && decoded.payload.buffer).toBe(
      bytes.buffer,
    )
  })
})

describe('encodeClientMessage', () => {
  it.each([
    { verb: 'publish', key: 'a', messageId: 'x noecho', echo: true, payload: '1' },
    { verb: 'publish', id: '1\n', key: 'a', echo: true, payload: '1' },
    { verb: 'unlisten', id: '-', pattern: 'a' },
    { verb: 'listen', id: '1', pattern: 'a', since: 'e:1 group=g' },
    { verb: 'listen', id: '1', pattern: 'a', group: '' },
    { verb: 'history', id: '1', key: 'a', last: 1.5 },
    { verb: 'history', id: '1', key: 'a', limit: Number.NaN },
    { verb: 'listen', id: '1', pattern: 'a', rewindMs: 0.5 },
  ] as const)('refuses a header field that would break the header: %j', (message) => {
    expect(outcomeOf(() => encodeClientMessage(message))).toMatchObject({ code: 'E_MESSAGE_INVALID' })
  })
})

describe('decodeServerMessage', () => {
  // Symptom: a message was lost, with a URIError. Cause: its user was decoded before it was delivered.
  it.each(['%', '%zz', '%ff', '%ed%a0%80'])(
    'delivers a message of the undecodable user %j without its stamp',
    (user) => {
      const message = decodeServerMessage(`message a k:1 user=${user} time=5 id=m\n1`)
      expect(message).toStrictEqual({
        verb: 'message',
        key: 'a',
        position: 'k:1',
        replayed: false,
        meta: undefined,
        payload: '1',
      })
      expect(decodeServerMessage('message a k:1 user=%40 time=5 id=m\n1')).toMatchObject({ meta: { userId: '@' } })
    },
  )
})

describe('encodeMessageFrame', () => {
  it('gives every frame bytes of its own', () => {
    const frames = Array.from({ length: 3_000 }, (_, index) =>
      encodeMessageFrame(`k${index}`, undefined, false, encoder.encode(`${index}`)),
    )
    const texts = frames.map((frame) => new TextDecoder().decode(frame))
    expect(texts).toEqual(frames.map((_, index) => `message k${index} -\n${index}`))
  })

  it('writes a payload larger than its pool', () => {
    const frame = encodeMessageFrame('a', undefined, false, new Uint8Array(300_000).fill(7))
    expect([frame.length, frame.at(-1)]).toEqual([300_000 + 'message a -\n'.length, 7])
  })
})
