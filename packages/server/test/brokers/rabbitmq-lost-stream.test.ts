import { expect, it, onTestFinished } from 'vitest'
import { historyOf } from 'webmq-conformance'
import { type RabbitmqService, startRabbitmq } from 'webmq-services'
import { newNamespace, nodeOptions, publishText, startNode } from './rabbitmq-node.js'

/** As the README of webmq-broker-rabbitmq has it for RabbitMQ 4; before, `internal_delete` took the name. */
async function removeLostStream(service: RabbitmqService, queue: string): Promise<void> {
  const name = `rabbit_misc:r(<<"/">>, queue, <<"${queue}">>)`
  const found = `{ok, Q} = rabbit_amqqueue:lookup_durable_queue(${name})`
  await service
    .ctl('eval', `${found}, rabbit_amqqueue:internal_delete(Q, <<"operator">>).`)
    .catch(() => service.ctl('eval', `rabbit_amqqueue:internal_delete(${name}, <<"operator">>).`))
}

/** What a node is told: RabbitMQ 4.3 ends the connection instead of an answer. */
async function lossOf(service: RabbitmqService, queue: string): Promise<RegExp> {
  const isOld = /^(3|4\.[0-2])\./.test(await service.ctl('version'))
  return isOld ? new RegExp(`of durable queue '${queue}' in vhost '/' is down or inaccessible`) : /INTERNAL_ERROR/
}

// RabbitMQ loses it when it is killed within half a second after its first stream was declared, and at times on a full disk.
it('is unavailable while RabbitMQ has lost track of its streams, and has a new log when the stream was removed', async () => {
  const service = await startRabbitmq({ isPrivate: true })
  onTestFinished(() => service.stop())
  const options = (namespace: string) =>
    nodeOptions(service.url, namespace, { ...historyOf('#=1000'), brokerStartTimeoutMs: 5_000 })
  const namespace = newNamespace()
  const { broker } = await startNode(options(namespace))
  await publishText(broker, 'a', '1')
  const position = await broker.position()
  await broker.stop()
  await service.ctl('eval', 'ra:force_delete_server(coordination, {rabbit_stream_coordinator, node()}).')
  const loss = await lossOf(service, `${namespace}.log`)
  for (let restart = 1; restart <= 2; restart++) {
    await service.restart()
    await expect(startNode(options(namespace))).rejects.toMatchObject({
      code: 'E_BROKER_UNAVAILABLE',
      message: expect.stringMatching(loss),
    })
  }
  await startNode(options(newNamespace()))
  await removeLostStream(service, `${namespace}.log`)
  const { broker: after } = await startNode(options(namespace))
  await publishText(after, 'a', '2')
  if (position === undefined) throw new Error('it was not logged')
  expect(await after.read({ since: position }, ['#'])).toMatchObject({ gap: 'epoch-changed' })
}, 180_000)
