import { connect } from 'amqplib'
import { expect, it, onTestFinished } from 'vitest'
import { sharedService } from 'webmq-services'
import { createRabbitmqBroker } from '../../src/brokers/remote-brokers.js'
import { newNamespace, nodeOptions } from './rabbitmq-node.js'

/** More than the broker sends before the node has acknowledged some. */
const MESSAGE_COUNT = 5_000
/** The node reads no faster than this. */
const MS_PER_MESSAGE = 0.05

it('has given out the messages of an earlier binding when a pattern is live again', async () => {
  const { url } = await sharedService('rabbitmq')
  const namespace = newNamespace()
  const broker = await createRabbitmqBroker(nodeOptions(url, namespace))
  onTestFinished(() => broker.stop())
  let receivedCount = 0
  await broker.start({
    deliver: () => {
      const endMs = performance.now() + MS_PER_MESSAGE
      while (performance.now() < endMs);
      return ++receivedCount > 0
    },
    status: () => undefined,
    gap: () => undefined,
    refused: () => undefined,
  })
  const backend = await connect(url)
  onTestFinished(() => backend.close())
  const channel = await backend.createConfirmChannel()
  await broker.bind('a.*')
  for (let number = 0; number < MESSAGE_COUNT; number++) channel.publish(namespace, 'a.b', Buffer.from('1'))
  await channel.waitForConfirms()
  await broker.unbind('a.*')
  await broker.bind('a.*')
  expect(receivedCount).toBe(MESSAGE_COUNT)
})
