import { describe, expect, it, vi } from 'vitest'
import { FakeServer } from '../../../../test/fake-server.js'
import { memoryOptions } from '../../../../test/memory-options.js'
import { MemoryBroker } from '../../../adapters/brokers/memory/broker.js'
import type { BrokerSink } from '../../ports/broker.js'

/** A broker that tells a gap when it is asked to. */
class GappyBroker extends MemoryBroker {
  sink: BrokerSink | undefined

  override start(sink: BrokerSink): Promise<void> {
    this.sink = sink
    return super.start(sink)
  }
}

describe('ping', () => {
  it('is answered without a position by a node that keeps no log', async () => {
    const fake = await FakeServer.start({ historyMaxMessages: 0 })
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'ping' })
    await fake.settled()
    expect(client.messages).toEqual([{ verb: 'pong' }])
  })

  it('is answered with the end of the log, whoever listens to it, after what was sent before [P-9.7]', async () => {
    const fake = await FakeServer.start()
    const client = await fake.connect()
    client.send({ verb: 'listen', id: 'l', pattern: 'quiet' })
    client.send({ verb: 'listen', id: 'm', pattern: 'busy' })
    await fake.settled()
    client.clear()
    await fake.server.publish('quiet', 1)
    await fake.server.publish('busy', 2)
    await fake.server.publish('nobody', 3)
    client.send({ verb: 'ping' })
    await fake.settled()
    expect(client.messages.map(({ verb }) => verb)).toEqual(['message', 'message', 'pong'])
    expect(client.messages.at(-1)).toEqual({ verb: 'pong', position: await fake.position() })
  })

  it('names no position while there are listeners who still have to be told of a gap', async () => {
    const broker = new GappyBroker(memoryOptions())
    const fake = await FakeServer.start({ maxListensPerConnection: 2_000 }, { broker })
    const client = await fake.connect()
    for (let index = 0; index < 1_001; index++) {
      client.send({ verb: 'listen', id: `l${index}`, pattern: `k.${index}` })
    }
    await vi.waitFor(() => expect(client.received('ok')).toHaveLength(1_001))
    await fake.server.publish('k.1', 1)
    await fake.settled()
    client.clear()
    // Received in the next turn, before the last of these patterns is told.
    client.send({ verb: 'ping' })
    broker.sink?.gap('broker-lost')
    expect(client.received('gap')).toHaveLength(1_000)
    await vi.waitFor(() => expect(client.received('gap')).toHaveLength(1_001))
    client.send({ verb: 'ping' })
    await fake.settled()
    expect(client.received('pong')).toEqual([{ verb: 'pong' }, { verb: 'pong', position: await fake.position() }])
  })
})
