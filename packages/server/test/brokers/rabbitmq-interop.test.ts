import type { ConsumeMessage } from 'amqplib'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { historyOf } from 'webmq-conformance'
import { type SharedRabbitmq, sharedService } from 'webmq-services'
import { startBackend } from './amqp-backend.js'
import { newNamespace, nodeOptions, publishText, startNode } from './rabbitmq-node.js'

let service: SharedRabbitmq

beforeAll(async () => {
  service = await sharedService('rabbitmq')
})

describe('rabbitmq and plain AMQP', () => {
  it('is consumed from by anybody: the exchange has the name of the namespace, the payload is bare', async () => {
    const namespace = newNamespace()
    const { broker } = await startNode(nodeOptions(service.url, namespace))
    const channel = await startBackend(service.url)
    const { queue } = await channel.assertQueue('', { exclusive: true })
    await channel.bindQueue(queue, namespace, 'orders.*.#')
    const messages: ConsumeMessage[] = []
    await channel.consume(queue, (message) => message !== null && messages.push(message), { noAck: true })
    await publishText(broker, 'orders.1', '{"total": 1}')
    await broker.publish({ key: 'orders.2.raw', payload: Uint8Array.of(0, 1, 255), isBinary: true, publisher: 3 })
    await vi.waitFor(() => expect(messages).toHaveLength(2))
    expect(
      messages.map(({ fields, properties, content }) => [
        fields.exchange,
        fields.routingKey,
        properties.contentType,
        properties.deliveryMode,
        [...content],
      ]),
    ).toEqual([
      [namespace, 'orders.1', 'application/json', 2, [...Buffer.from('{"total": 1}')]],
      [namespace, 'orders.2.raw', 'application/octet-stream', 2, [0, 1, 255]],
    ])
    expect(messages[0]?.properties.messageId).toMatch(/^webmq-[\da-f]{16}-1-\d+$/)
    expect(messages[1]?.properties.messageId).toMatch(/^webmq-[\da-f]{16}-2-\d+-3$/)
  })

  it('is published to by anybody, as text or bytes by content type or by what it is', async () => {
    const namespace = newNamespace()
    const { broker, received } = await startNode(nodeOptions(service.url, namespace))
    await broker.bind('#')
    const channel = await startBackend(service.url)
    const publish = (key: string, content: string | Buffer, options = {}) =>
      channel.publish(namespace, key, Buffer.from(content), options)
    publish('said', '{"a":1}', { contentType: 'application/json' })
    publish('said.charset', '"é"', { contentType: 'application/json; charset=utf-8', contentEncoding: 'utf-8' })
    publish('said.suffix', '[1]', { contentType: 'application/cloudevents+json' })
    publish('unsaid.json', '"text"')
    publish('unsaid.other', 'no JSON')
    publish('bytes', '{}', { contentType: 'application/octet-stream' })
    publish('gzip', '{}', { contentType: 'application/json', contentEncoding: 'gzip' })
    await vi.waitFor(() => expect(received).toHaveLength(7))
    expect(received.map(({ key, text, isBinary }) => `${key} ${text} ${isBinary ? 'bytes' : 'text'}`)).toEqual([
      'said {"a":1} text',
      'said.charset "é" text',
      'said.suffix [1] text',
      'unsaid.json "text" text',
      'unsaid.other no JSON bytes',
      'bytes {} bytes',
      'gzip {} bytes',
    ])
    expect(broker.stats()).toMatchObject({ receivedCount: 7, surplusCount: 0, malformedCount: 0 })
  })

  it('counts what others publish and cannot be a message, and goes on', async () => {
    const namespace = newNamespace()
    const { broker, received } = await startNode(nodeOptions(service.url, namespace))
    await broker.bind('#')
    const channel = await startBackend(service.url)
    for (const key of ['', 'a b', 'a.*', 'a#']) channel.publish(namespace, key, Buffer.from('1'))
    channel.publish(namespace, 'a', Buffer.of(0x22, 0xff, 0x22), { contentType: 'application/json' })
    channel.publish(namespace, 'end', Buffer.from('1'))
    await vi.waitFor(() => expect(received.map(({ key }) => key)).toEqual(['end']))
    expect(broker.stats().malformedCount).toBe(5)
  })

  it('takes no message of others for one of a node, whatever its properties', async () => {
    const namespace = newNamespace()
    const { broker, received } = await startNode(nodeOptions(service.url, namespace))
    await broker.bind('#')
    const channel = await startBackend(service.url)
    const ids = [
      'webmq-',
      'webmq-0123456789abcdef-',
      'webmq-0123456789abcdef-1',
      'webmq-0123456789ABCDEF-1-97',
      'x'.repeat(60),
    ]
    const more = ['0-97', '1-98', '-1-97', '1-97-', '1-97-1-1', '1.0-97', '1-97x', '99999999999999999-97', '01-']
    for (const messageId of [...ids, ...more.map((end) => `webmq-0123456789abcdef-${end}`)]) {
      // Twice: were it a node's, the second would be dropped.
      for (const text of [`1 ${messageId}`, `2 ${messageId}`]) {
        channel.publish(namespace, 'a', Buffer.from(JSON.stringify(text)), {
          messageId,
          headers: { a: [1] },
          appId: 'x',
          type: 'y',
        })
      }
    }
    const count = 2 * (ids.length + more.length)
    await vi.waitFor(() => expect(received).toHaveLength(count))
    expect(received.every(({ isBinary }) => !isBinary)).toBe(true)
  })

  it('delivers what a service publishes anew with all its properties, to another key', async () => {
    const namespace = newNamespace()
    const { broker, received } = await startNode(nodeOptions(service.url, namespace))
    await broker.bind('#')
    const channel = await startBackend(service.url)
    const { queue } = await channel.assertQueue('', { exclusive: true })
    await channel.bindQueue(queue, namespace, 'in')
    await channel.consume(
      queue,
      (message) => message !== null && channel.publish(namespace, 'out', message.content, message.properties),
    )
    await publishText(broker, 'in', '1')
    await vi.waitFor(() => expect(received.map(({ key }) => key)).toEqual(['in', 'out']))
  })
})

describe('rabbitmq and text that is not ASCII', () => {
  // Symptom: a message id, key or header with CJK or control characters cut the link. Cause: a length in UTF-16 units.
  const TEXTS = ['編號一', '\r\n\0\u001b', '日本語'.repeat(40), 'é\u0300', '\u{1f600}', '\ud800', 'x'.repeat(300)]

  it.each([
    ['without a log', historyOf()],
    ['with a log', historyOf('#=1000')],
  ])('carries it in keys and in the ids and headers of others, and never ends the link, %s', async (_, history) => {
    const namespace = newNamespace()
    const { broker, received, events } = await startNode(nodeOptions(service.url, namespace, history))
    const channel = await startBackend(service.url)
    onTestFinished(async () => void (await channel.deleteQueue(`${namespace}.log`)))
    await broker.bind('#')
    const payload = Buffer.from('"1"')
    await Promise.all(TEXTS.map((_text, index) => broker.publish({ key: `編號.${index}`, payload, isBinary: false })))
    await broker.publish({ key: '日'.repeat(85), payload, isBinary: false })
    for (const [index, text] of TEXTS.entries()) {
      const messageId = text.slice(0, 80)
      channel.publish(namespace, `他.${index}`, payload, {
        messageId,
        headers: { [messageId]: text, 'webmq-log': text },
      })
    }
    await vi.waitFor(() => expect(received).toHaveLength(2 * TEXTS.length + 1))
    expect(new Set(received.map(({ text }) => text))).toEqual(new Set(['"1"']))
    expect(events).toEqual(['up'])
  })

  it('refuses a message that AMQP cannot carry, and that one alone', async () => {
    const { broker, received, events } = await startNode(nodeOptions(service.url, newNamespace()))
    await broker.bind('#')
    // 258 bytes: the node refuses such keys before they come here.
    const results = await Promise.allSettled(['a', '編'.repeat(86), 'b'].map((key) => publishText(broker, key, '1')))
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    await vi.waitFor(() => expect(received.map(({ key }) => key)).toEqual(['a', 'b']))
    expect(events).toEqual(['up'])
    expect(broker.stats()).toMatchObject({ rejectedCount: 1, pendingCount: 0 })
  })
})

describe('rabbitmq and a node with many patterns', () => {
  const PATTERN_COUNT = 3_000
  const rabbitmqLimits = { maxPatterns: 200 }

  it('binds everything instead, drops what it does not want, and binds one by one again when they are few', async () => {
    const namespace = newNamespace()
    const { broker, received } = await startNode(
      nodeOptions(service.url, namespace, { rabbitmqLimits }),
      (key) => key !== 'user.nobody',
    )
    const patterns = Array.from({ length: PATTERN_COUNT }, (_, index) => `user.${index}.#`)
    await Promise.all(patterns.map((pattern) => broker.bind(pattern)))
    await publishText(broker, `user.${PATTERN_COUNT - 1}`, '1')
    await publishText(broker, 'user.nobody', '2')
    await publishText(broker, 'user.0', '3')
    await vi.waitFor(() => expect(received.map(({ text }) => text)).toEqual(['1', '3']))
    expect(broker.stats()).toMatchObject({ receivedCount: 3, surplusCount: 1 })
    for (const pattern of patterns.slice(10)) void broker.unbind(pattern)
    const bindings = async () =>
      (await service.ctl('list_bindings', 'source_name', 'routing_key'))
        .split('\n')
        .filter((line) => line.startsWith(`${namespace}\t`))
    // And that of the messages that are ephemeral. On a busy machine rabbitmqctl takes seconds for each look.
    await vi.waitFor(async () => expect(await bindings()).toHaveLength(10 + 1), { interval: 500, timeout: 60_000 })
    await publishText(broker, 'user.nobody', '4')
    await publishText(broker, 'user.9', '5')
    await vi.waitFor(() => expect(received.at(-1)?.text).toBe('5'))
    expect(broker.stats()).toMatchObject({ receivedCount: 4, surplusCount: 1 })
  })
})
