import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { eventually, WebSocketClient } from 'webmq-conformance'
import { type Service, startRedis } from 'webmq-services'
import { createServer } from '../../src/create-server.js'
import { freshNamespace } from './redis-node.js'

let service: Service
beforeAll(async () => {
  service = await startRedis({ isPrivate: true })
})
afterAll(() => service.stop())

// Symptom: clients were shown the host and port of the broker. Cause: the text of its error was sent as it was.
it('tells clients that the broker is away, and not where it is', async () => {
  const { hostname, port } = new URL(service.url)
  const server = createServer({
    port: 0,
    logLevel: 'silent',
    broker: service.url,
    brokerNamespace: freshNamespace(),
    // Ten heartbeats: on a busy machine, too, the broker is known to be away before a message has waited for so long.
    brokerTimeoutMs: 2_000,
    brokerHeartbeatMs: 200,
  })
  onTestFinished(() => server.stop({ drainMs: 0 }))
  const { url } = await server.start()
  const client = await WebSocketClient.open(url)
  onTestFinished(() => client.destroy())
  const answers = () => client.texts
  client.send('publish before a\n1')
  await eventually(() => expect(answers().join()).toContain('ok before'))
  await service.freeze()
  onTestFinished(() => service.thaw())
  const ids = ['p1', 'p2', 'l']
  client.send('publish p1 a\n1')
  client.send('listen l b.#')
  const isAnswered = (id: string) => answers().some((answer) => answer.startsWith(`error ${id} `))
  await eventually(() => expect(isAnswered('p1')).toBe(true))
  // Now the broker is known to be away: another path.
  await eventually(() => expect(server.stats().broker.status).toBe('down'))
  client.send('publish p2 a\n1')
  await eventually(() => expect(ids.filter((id) => !isAnswered(id))).toEqual([]))
  for (const answer of answers().filter((text) => text.startsWith('error '))) {
    expect(answer).toContain('E_BROKER_UNAVAILABLE')
    for (const secret of [port, hostname, 'redis', 'ECONN']) expect(answer).not.toContain(secret)
  }
})
