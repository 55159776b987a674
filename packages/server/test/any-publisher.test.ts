import fc from 'fast-check'
import { SignJWT } from 'jose'
import { describe, expect, it, onTestFinished } from 'vitest'
import { isKey } from 'webmq-client/protocol'
import { decodeMessageId, encodeMessageId } from '../../broker-rabbitmq/src/message-properties.js'
import { decodeEnvelope, encodeEnvelope } from '../src/adapters/brokers/remote/envelope.js'
import { createTokenVerifier } from '../src/kernel/identity/index.js'
import { brokerMessageId, clientOwner } from '../src/kernel/publishing/draft.js'
import { FakeServer } from './fake-server.js'

/*
 * Symptom: a token with a `sub` of 40 CJK characters ended the process at its first publish.
 * Cause: the id of the message for the broker began with the `sub`.
 */

const SECRET = 'a shared secret of more than 32 bytes'
const NODE = '0123456789abcdef'
const GRANTS = { grants: [{ keys: ['#'], allow: ['listen', 'publish'] }] }

/** Whatever JSON says, and texts that once did harm. */
const sub = fc.oneof(
  fc.constantFrom(
    '消'.repeat(40),
    'josé',
    'a\r\nNats-Rollup: all',
    '\u0000',
    '\ud800',
    'x'.repeat(255),
    'x'.repeat(256),
  ),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 300 }),
  fc.jsonValue(),
)
const key = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
  .filter((text) => isKey(text) && text[0] !== '$')
const messageId = fc.stringMatching(/^[\w-]{1,64}$/)
const payload = fc.uint8Array({ maxLength: 200 })

describe('a publisher with any claims, key, message id and payload', () => {
  it('is refused as a whole, or publishes a message that arrives as it is', async () => {
    const fake = await FakeServer.start(
      { jwt: { secret: SECRET } },
      { verifier: createTokenVerifier({ secret: SECRET }) },
    )
    onTestFinished(() => fake.server.stop({ drainMs: 0 }))
    const received: { key: string; payload: Uint8Array }[] = []
    const listener = fake.server.listen('#', (data, message) => {
      received.push({ key: message.key, payload: data as Uint8Array })
    })
    await listener.ready
    await fc.assert(
      fc.asyncProperty(sub, key, messageId, payload, async (sub, key, messageId, payload) => {
        const claims = { sub, webmq: GRANTS } as { sub: string }
        const token = await new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(SECRET))
        const client = await fake.connect()
        client.send({ verb: 'auth', id: 'a', token })
        // Another thread verifies it.
        const isAnswered = () => client.received('ok').length + client.received('error').length > 0
        for (let turn = 0; turn < 1_000 && !isAnswered(); turn++) await fake.settled()
        const isUser =
          typeof sub === 'string' && sub !== '' && Buffer.byteLength(sub) <= 255 && !/[\p{Cc}\p{Surrogate}]/u.test(sub)
        expect(client.received('ok')).toHaveLength(isUser ? 1 : 0)
        if (!isUser) return
        received.length = 0
        client.send({ verb: 'publish', id: 'p', key, messageId, echo: true, payload })
        await fake.settled()
        expect(client.received('ok').map(({ id }) => id)).toEqual(['a', 'p'])
        const isFirst = client.received('ok').at(-1)?.duplicate !== true
        // Handlers in the process get messages in turns of their own.
        for (let turn = 0; turn < 1_000 && isFirst && received.length === 0; turn++) await fake.settled()
        expect(received.map(({ key, payload }) => [key, Buffer.from(payload)])).toEqual(
          isFirst ? [[key, Buffer.from(payload)]] : [],
        )
        client.drop()
      }),
      { numRuns: 300 },
    )
  })

  it('is encoded for every broker without loss', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), key, messageId, payload, (user, key, own, payload) => {
        const messageId = brokerMessageId(clientOwner(user), key, own)
        const message = { sequence: 7, key, payload, isBinary: true, publisher: 3, messageId, isLogged: true }
        expect(decodeEnvelope(undefined, encodeEnvelope(NODE, message, key))).toMatchObject({ key, messageId })
        expect(decodeMessageId(encodeMessageId(NODE, message), key)).toMatchObject({ ownId: messageId })
        // As a header of NATS.
        expect(messageId).toMatch(/^[\w-]{22}$/)
      }),
    )
  })
})
