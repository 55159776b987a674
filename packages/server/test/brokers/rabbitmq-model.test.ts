import { type Channel, type ConfirmChannel, type ConsumeMessage, connect, type Options } from 'amqplib'
import { expect, it, onTestFinished } from 'vitest'
import { sharedService } from 'webmq-services'
import { startModel } from '../../../../test/seeded/wire/rabbitmq/service.js'

type Say = (...said: unknown[]) => void
interface Client {
  readonly url: string
  /** Of names that no other client uses. */
  readonly prefix: string
  open(): Promise<ConfirmChannel>
}

const TEXT = Buffer.from('text')

/** What a client of RabbitMQ sees. Times differ, and which confirms share a frame. */
const CASES: Readonly<Record<string, (client: Client, say: Say) => Promise<void>>> = {
  'refuses a vhost, a password, and a type of exchange': async ({ url, prefix, open }, say) => {
    await refused(say, connect(url.replace(/$/, '/no-such')))
    await refused(say, connect(url.replace('guest:guest', 'guest:wrong')))
    const channel = await open()
    await channel.assertExchange(prefix, 'topic', { durable: true })
    await refused(say, (await open()).assertExchange(prefix, 'direct', { durable: true }))
    await refused(say, (await open()).assertExchange('amq.own', 'topic'))
    await refused(say, (await open()).checkExchange(`${prefix}.none`))
    await channel.deleteExchange(prefix)
  },
  'refuses queues that are missing, locked, or declared otherwise': async ({ prefix, open }, say) => {
    const [one, other, third] = [await open(), await open(), await open()]
    await one.assertQueue(prefix, { exclusive: true, durable: false, arguments: { 'x-max-length': 5 } })
    await refused(say, other.assertQueue(prefix, { exclusive: true, durable: false, arguments: { 'x-max-length': 6 } }))
    await refused(say, third.checkQueue(`${prefix}.none`))
    await refused(say, one.assertQueue(prefix, { exclusive: true, durable: false, arguments: { 'x-max-length': 6 } }))
    const [fourth, fifth] = [await open(), await open()]
    await refused(say, fourth.bindQueue(`${prefix}.none`, 'amq.topic', 'a'))
    await refused(say, fifth.bindQueue(prefix, '', 'a'))
  },
  'ends the channel of a publish to a missing exchange, and answers an unroutable one first': async (
    { prefix, open },
    say,
  ) => {
    const channel = await open()
    channel.on('return', ({ fields }) => say('return', { ...fields }))
    await published(channel, say, '', `${prefix}.none`, { mandatory: true })
    await published(channel, say, 'amq.topic', `${prefix}.none`)
    const ended = ending(channel)
    channel.publish(`${prefix}.none`, 'a', TEXT)
    say(await ended)
  },
  'gives messages by turns, bounded, and again when their channel ends': async ({ prefix, open }, say) => {
    const [publisher, one, other] = [await open(), await open(), await open()]
    await publisher.assertQueue(prefix, { durable: true, arguments: { 'x-queue-type': 'classic' } })
    await one.prefetch(2)
    for (const text of ['1', '2', '3', '4']) publisher.sendToQueue(prefix, Buffer.from(text))
    await publisher.waitForConfirms()
    const first = await consumed(one, prefix, 2)
    say(first.map(told))
    await one.close()
    say((await consumed(other, prefix, 4)).map(told))
    const ended = ending(other)
    other.ack({ fields: { deliveryTag: 9 } } as ConsumeMessage)
    say(await ended)
    say(await publisher.deleteQueue(prefix))
  },
  'drops the oldest message of a full queue, to another queue or a refusal of the newest': async (
    { prefix, open },
    say,
  ) => {
    const channel = await open()
    const dead = { 'x-max-length': 2, 'x-dead-letter-exchange': '', 'x-dead-letter-routing-key': `${prefix}.dead` }
    await channel.assertQueue(`${prefix}.dead`, { exclusive: true })
    await channel.assertQueue(prefix, { exclusive: true, arguments: dead })
    for (const text of ['1', '2', '3', '4', '5']) channel.sendToQueue(prefix, Buffer.from(text))
    await channel.waitForConfirms()
    say((await consumed(channel, prefix, 2)).map(told), (await consumed(channel, `${prefix}.dead`, 3)).map(told))
    const full = { 'x-max-length': 1, 'x-overflow': 'reject-publish' }
    await channel.assertQueue(`${prefix}.full`, { exclusive: true, arguments: full })
    await published(channel, say, '', `${prefix}.full`)
    await published(channel, say, '', `${prefix}.full`)
  },
  'tells consumers of a queue that is deleted, and lets one alone be exclusive': async ({ prefix, open }, say) => {
    const [channel, other] = [await open(), await open()]
    await channel.assertQueue(prefix, { durable: true, arguments: { 'x-queue-type': 'classic' } })
    const cancelled = new Promise((resolve) => {
      void channel.consume(prefix, (message) => message === null && resolve(null), { exclusive: true })
    })
    await channel.checkQueue(prefix)
    await refused(
      say,
      other.consume(prefix, () => undefined),
    )
    await (await open()).deleteQueue(prefix)
    say(await cancelled)
    say(await channel.deleteQueue(prefix))
  },
  'reads a stream from an offset, with acknowledgements and a bound alone': async ({ prefix, open }, say) => {
    const channel = await open()
    const stream = { durable: true, arguments: { 'x-queue-type': 'stream' } }
    await channel.assertQueue(prefix, stream)
    for (const text of ['0', '1', '2', '3']) {
      channel.sendToQueue(prefix, Buffer.from(text), { messageId: text, headers: { own: 1 }, persistent: true })
      await channel.waitForConfirms()
    }
    for (const offset of ['first', 0, 2, 9, 'next']) {
      const reader = await open()
      await reader.prefetch(10)
      const reading = consumed(reader, prefix, 1, { arguments: { 'x-stream-offset': offset } })
      if (offset === 9 || offset === 'next') {
        await reader.checkQueue(prefix)
        for (let at = 0; at < 8; at++) channel.sendToQueue(prefix, Buffer.from(`behind ${offset}`))
      }
      const [message] = await reading
      say(offset, message && told(message), message?.properties.headers, message?.properties.messageId)
      await reader.close()
    }
    await refused(
      say,
      (await open()).consume(prefix, () => undefined),
    )
    await refused(say, (await open()).assertQueue(`${prefix}.x`, { ...stream, durable: false }))
    await channel.deleteQueue(prefix)
  },
}

async function refused(say: Say, call: Promise<unknown>): Promise<void> {
  const error = await call.then(() => undefined, String)
  // Nodes look at the code alone.
  say(error?.replace(/(\d{3}) \(([A-Z-]+)\).*/s, '$1 $2'))
}

async function published(channel: ConfirmChannel, say: Say, exchange: string, key: string, options?: Options.Publish) {
  const error = await new Promise((resolve) => channel.publish(exchange, key, TEXT, options, resolve))
  say('confirm', String(error))
}

function ending(channel: Channel): Promise<unknown> {
  return new Promise((resolve) => channel.once('error', ({ code }: { code?: number }) => resolve(code)))
}

function consumed(channel: Channel, queue: string, count: number, options = {}): Promise<ConsumeMessage[]> {
  const messages: ConsumeMessage[] = []
  return new Promise((resolve, reject) => {
    const take = (message: ConsumeMessage | null) => {
      if (message !== null && messages.push(message) === count) resolve(messages)
    }
    channel.consume(queue, take, options).catch(reject)
  })
}

const told = ({ fields, content }: ConsumeMessage) =>
  [content.toString(), fields.deliveryTag, fields.redelivered, fields.exchange].join(' ')

let clientCount = 0

async function seen(url: string, look: (client: Client, say: Say) => Promise<void>): Promise<unknown[]> {
  const prefix = `same-${process.pid}-${++clientCount}`
  const open = async () => {
    const model = await connect(url)
    model.on('error', () => undefined)
    onTestFinished(() => model.close().catch(() => undefined))
    const channel = await model.createConfirmChannel()
    channel.on('error', () => undefined)
    return channel
  }
  const lines: unknown[] = []
  await look({ url, prefix, open }, (...said) => lines.push(JSON.stringify(said).replaceAll(prefix, 'PREFIX')))
  return lines
}

it.each(Object.entries(CASES))(
  '%s, as RabbitMQ',
  async (_, look) => {
    const model = await startModel()
    onTestFinished(() => model.stop())
    const rabbitmq = await sharedService('rabbitmq')
    const lines = await seen(rabbitmq.url, look)
    expect(lines.length).toBeGreaterThan(2)
    expect(await seen(model.url, look)).toEqual(lines)
  },
  60_000,
)
