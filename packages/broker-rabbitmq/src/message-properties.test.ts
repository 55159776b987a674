import type { ConsumeMessage, MessageProperties } from 'amqplib'
import { expect, it } from 'vitest'
import type { MessageAttributes } from 'webmq-server/ports'
import { deliveryOf, encodeMessageId, withAttributes } from './message-properties.js'

const NODE = '0123456789abcdef'
const ATTRIBUTES: MessageAttributes = { userId: '中'.repeat(85), timeMs: 1_795_392_000_123, copyOf: 7 }

/** A message of a node, with these headers. */
function messageWith(headers: Readonly<Record<string, unknown>>): ConsumeMessage {
  const payload = Buffer.from('"x"')
  const messageId = encodeMessageId(NODE, { sequence: 1, key: 'a', payload, isBinary: false, isLogged: true })
  const properties = { messageId, contentType: 'application/json', headers } as Partial<MessageProperties>
  const fields = { exchange: 'webmq', routingKey: 'a' } as ConsumeMessage['fields']
  return { fields, properties: properties as MessageProperties, content: payload }
}

/** What RabbitMQ 3.13.5 and later give back from a stream: bytes as a text, which amqplib reads as UTF-8. */
function throughStream(headers: Readonly<Record<string, string | Buffer>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.toString()]))
}

it('reads attributes in every form, and as text also where a stream has made text of bytes', () => {
  for (const form of ['bytes', 'text', 'both'] as const) {
    const headers = withAttributes({ 'webmq-log': 'epoch-1.1780000000123' }, ATTRIBUTES, form)
    expect(deliveryOf(messageWith(headers))?.attributes).toEqual(ATTRIBUTES)
    const isKept = form !== 'bytes'
    expect(deliveryOf(messageWith(throughStream(headers)))?.attributes).toEqual(isKept ? ATTRIBUTES : undefined)
  }
})

it('takes no message with attributes that it cannot read', () => {
  const broken = [
    '',
    'E',
    '*'.repeat(8),
    'EA==\n',
    `${'A'.repeat(1_365)}==`,
    'AAAA'.repeat(400),
    7,
    null,
    {},
    Buffer.of(0),
  ]
  for (const value of broken) expect(deliveryOf(messageWith({ 'webmq-attributes': value }))).toBeUndefined()
  expect(deliveryOf(messageWith({}))?.attributes).toBeUndefined()
})
