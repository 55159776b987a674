import { connect } from 'amqplib'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createRabbitmqBroker } from 'webmq-broker-rabbitmq'
import { sharedService } from 'webmq-services'
import { newNamespace, nodeOptions } from './rabbitmq-node.js'

/** More than the broker sends before the node has acknowledged some. */
const MESSAGE_COUNT = 5_000
/** Published while nobody listens. */
const UNHEARD_COUNT = 20
/** The node reads no faster than this. */
const MS_PER_MESSAGE = 0.05

/**
 * Symptom: a client that came back to a node, while the broker was busy, missed messages in silence. Cause: the node answered
 * the listen while messages of its earlier binding were still in the queue. They came after the gap, and what was
 * published between the two bindings was missing behind them.
 */
it('has given out the messages of an earlier binding when a pattern is live again', async () => {
  const { url } = await sharedService('rabbitmq')
  const namespace = newNamespace()
  const broker = await createRabbitmqBroker(nodeOptions(url, namespace))
  onTestFinished(() => broker.stop())
  const received: number[] = []
  await broker.start({
    deliver: ({ payload }) => {
      const endMs = performance.now() + MS_PER_MESSAGE
      while (performance.now() < endMs);
      return received.push(Number(new TextDecoder().decode(payload))) > 0
    },
    status: () => undefined,
    gap: () => undefined,
    refused: () => undefined,
  })
  const backend = await connect(url)
  onTestFinished(() => backend.close())
  const channel = await backend.createConfirmChannel()
  let published = 0
  const publish = async (count: number) => {
    for (let left = count; left > 0; left--) channel.publish(namespace, 'a.b', Buffer.from(String(++published)))
    await channel.waitForConfirms()
  }
  await broker.bind('a.*')
  await publish(MESSAGE_COUNT)
  await broker.unbind('a.*')
  await publish(UNHEARD_COUNT)
  await broker.bind('a.*')
  const before = received.length
  await publish(1)
  await vi.waitFor(() => expect(received.at(-1)).toBe(published))
  // Of the unheard ones, those came that were published before the unbind was made.
  expect(before).toBeGreaterThanOrEqual(MESSAGE_COUNT)
  expect(received.slice(before)).toEqual([published])
})
