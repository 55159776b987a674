import { afterEach, expect, it, vi } from 'vitest'
import type { WriteKind } from 'webmq-client/protocol'
import type { FakeClient } from 'webmq-conformance'
import { FakeServer } from '../../../test/fake-server.js'
import { memoryOptions } from '../../../test/memory-options.js'
import { MemoryBroker } from '../../adapters/brokers/memory/broker.js'
import { BrokerFilter } from '../../kernel/ports/broker-filter.js'

/** A broker whose reads may be held. */
class HeldBroker extends BrokerFilter {
  held: Promise<void> | undefined
  readonly readKeys: string[] = []

  override read(...args: Parameters<BrokerFilter['read']>): ReturnType<BrokerFilter['read']> {
    this.readKeys.push(...args[1])
    return this.held?.then(() => super.read(...args)) ?? super.read(...args)
  }
}

const KEYS = Array.from({ length: 20 }, (_, index) => `k${index}`)
const fakes: FakeServer[] = []

afterEach(async () => {
  await Promise.all(fakes.splice(0).map((fake) => fake.server.stop({ drainMs: 0 })))
})

async function start(): Promise<{ fake: FakeServer; broker: HeldBroker }> {
  const options = { history: ['#=100000'], historyMaxMessages: 100_000, insecure: true }
  const broker = new HeldBroker(new MemoryBroker(memoryOptions(options)))
  const fake = await FakeServer.start(options, { broker })
  fakes.push(fake)
  return { fake, broker }
}

/** A log that takes a read of one key many turns. */
async function startLong() {
  const started = await start()
  for (let index = 0; index < 20_000; index++)
    await started.broker.publish({ key: KEYS[index % 20] ?? '', payload: Buffer.from('1'), isBinary: false })
  return started
}

function write(client: FakeClient, key: string, kind: WriteKind) {
  const sequence = kind === 'start' ? 0 : 1
  client.send({ verb: 'stream', id: key, key, stream: 's', sequence, kind, payload: kind === 'append' ? '"x"' : '' })
}

async function answerTo(client: FakeClient, id: string): Promise<string> {
  return await vi.waitFor(() => {
    const answer = client.messages.find((message) => 'id' in message && message.id === id)
    if (answer === undefined) throw new Error('no answer')
    return answer.verb === 'error' ? answer.code : answer.verb
  })
}

// Symptom: nobody could begin a stream. Cause: a message without a start made a stream active, and nobody counted it.
it('counts streams that go on at this node as those of their user', async () => {
  const { fake } = await start()
  const hostile = await fake.connect({ remoteAddress: '192.0.2.1' })
  const honest = await fake.connect({ remoteAddress: '192.0.2.2' })
  for (let index = 0; index < 17; index++) write(hostile, `a${index}`, 'append')
  expect(await answerTo(hostile, 'a16')).toBe('E_RATE_LIMIT')
  expect(await answerTo(hostile, 'a15')).toBe('ok')
  expect(fake.server.stats().streams.activeCount).toBe(16)
  write(honest, 'b', 'start')
  expect(await answerTo(honest, 'b')).toBe('ok')
})

// Symptom: nobody could begin a stream. Cause: messages of one connection at ever new keys had a node read the log for all of them.
it('reads the log for 128 keys that a connection writes to, and refuses more until it has', async () => {
  const { fake, broker } = await start()
  const [hostile, honest] = [await fake.connect(), await fake.connect()]
  let release: (() => void) | undefined
  broker.held = new Promise((resolve) => {
    release = resolve
  })
  for (let index = 0; index < 200; index++) write(hostile, `a${index}`, 'end')
  expect(await answerTo(hostile, 'a128')).toBe('E_BROKER_UNAVAILABLE')
  expect(await answerTo(hostile, 'a199')).toBe('E_BROKER_UNAVAILABLE')
  expect(broker.readKeys).toHaveLength(128)
  write(honest, 'b', 'start')
  await vi.waitFor(() => expect(broker.readKeys).toContain('b'))
  broker.held = undefined
  release?.()
  expect(await answerTo(honest, 'b')).toBe('ok')
  expect(await answerTo(hostile, 'a127')).toBe('ok')
  write(hostile, 'c', 'start')
  expect(await answerTo(hostile, 'c')).toBe('ok')
})

// Symptom: a reader waited for all reads of another connection. Cause: the reads of streams were nobody's, and took turns with each other alone.
it('takes turns between the connections that read, and reads no more for one that has gone', async () => {
  const { fake, broker } = await startLong()
  const [hostile, honest] = [await fake.connect(), await fake.connect()]
  let doneBefore: number | undefined
  honest.onFrame = (...frame) => {
    doneBefore = hostile.received('ok').length
    hostile.drop()
    honest.onFrame = undefined
    honest.take(...frame)
  }
  for (const key of KEYS) hostile.send({ verb: 'read', id: key, key })
  honest.send({ verb: 'read', id: 'r', key: 'k0' })
  expect(await answerTo(honest, 'r')).toBe('ok')
  expect(doneBefore).toBeLessThan(3)
  await vi.waitFor(() => expect(fake.server.stats().connectionCount).toBe(1))
  broker.readKeys.length = 0
  honest.send({ verb: 'read', id: 'again', key: 'k1' })
  expect(await answerTo(honest, 'again')).toBe('ok')
  expect(new Set(broker.readKeys)).toEqual(new Set(['k1']))
})

it('goes on for others with what a connection has begun to read that has gone', async () => {
  const { fake } = await startLong()
  const [gone, other] = [await fake.connect(), await fake.connect()]
  write(gone, 'k0', 'start')
  write(other, 'k0', 'append')
  gone.drop()
  expect(await answerTo(other, 'k0')).toMatch(/^(ok|E_STREAM_ENDED)$/)
  expect((await fake.server.readStream('k0')).isCut).toBe(false)
})

// Symptom: others waited 30 ms beside clients that read streams of nothing. Cause: a read of a stream counted as a page of a
// replay, of which a turn has a hundred.
it('begins few reads of streams in one turn of the event loop, though they find nothing', async () => {
  const { fake, broker } = await start()
  const clients = await Promise.all([1, 2, 3, 4].map(() => fake.connect()))
  const counts: number[] = []
  for (const [place, client] of clients.entries())
    for (let index = 0; index < 50; index++)
      client.send({ verb: 'read', id: `r${index}`, key: `none.${place}.${index}` })
  for (let turn = 0, before = 0; turn < 1_000 && before < 200; turn++) {
    counts.push(broker.readKeys.length - before)
    before = broker.readKeys.length
    await new Promise(setImmediate)
  }
  expect(broker.readKeys).toHaveLength(200)
  expect(Math.max(...counts)).toBeLessThanOrEqual(20)
})
