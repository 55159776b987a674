import { connect } from 'amqplib'
import { expect, it, onTestFinished, vi } from 'vitest'
import { deferred } from '../../src/kernel/base/deferred.js'
import { KINDS } from './kinds.js'
import { lostEndSuite, NOWHERE, nodesOf, publish, RECOVERY } from './lost-end.js'

lostEndSuite(KINDS.rabbitmq)

/** Resolves when a node asks in the log who knows that it is whole. */
async function asked(url: string, queue: string): Promise<void> {
  const connection = await connect(url)
  // It ends with the server.
  connection.on('error', () => undefined)
  const isAsked = deferred()
  const consume = async () => {
    const channel = await connection.createChannel()
    // The stream is not there at once; the call rejects with it too.
    channel.on('error', () => undefined)
    await channel.prefetch(100)
    const take = (content = '') => {
      if (content.includes('"asks"')) isAsked.resolve()
    }
    const options = { arguments: { 'x-stream-offset': 'first' } }
    await channel.consume(queue, (message) => take(message?.content.toString()), options)
  }
  await vi.waitFor(consume, RECOVERY)
  await isAsked.promise
}

// Symptom: messages were missed in silence (seed 1020232). Cause: a node that had waited in vain for another one
// to say that the log was whole said so itself on its next link, since the log was as it had read it a moment before.
it('a log that has lost its end, and whose broker is restarted while a node asks for one who knows it, is a gap', async () => {
  const broken = await KINDS.rabbitmq.start({})
  onTestFinished(() => broken.stop())
  const namespace = 'asked'
  const startNode = nodesOf(KINDS.rabbitmq, broken, namespace)
  const first = await startNode()
  const [since = NOWHERE] = await publish(first, 1, 6)
  await first.stop()
  await broken.keepData?.()
  const second = await startNode()
  await publish(second, 6, 11)
  await second.stop()
  await broken.restoreData?.()
  const third = startNode()
  await asked(broken.url, `${namespace}.log`)
  await broken.restart()
  expect((await (await third).read({ since }, ['#'])).gap).toEqual(expect.any(String))
})
