import { afterEach, describe, expect, it, vi } from 'vitest'
import { FakeServer } from '../../../test/fake-server.js'
import { memoryOptions } from '../../../test/memory-options.js'
import { SlowBroker } from '../../../test/slow-broker.js'
import { MemoryBroker } from '../../adapters/brokers/memory/broker.js'
import { NativeCommands } from '../../adapters/transports/native/commands.js'
import type { ServerOptions } from '../../doors/options/server-options.js'

afterEach(() => {
  vi.restoreAllMocks()
})

describe('server.publishBatch', () => {
  it('publishes in order, and says what became of each', async () => {
    const fake = await FakeServer.start()
    const client = await fake.listener('a.#')
    const results = await fake.server.publishBatch([
      { key: 'a.1', payload: { n: 1 } },
      { key: 'b', payload: 2 },
      { key: 'a.3', payload: Uint8Array.of(3), id: 'three' },
      { key: 'a.3', payload: 'again', id: 'three' },
    ])
    const offsets = results.map(({ position }) => position?.split(/[:.]/)[1])
    expect(offsets).toEqual(['1', '2', '3', '3'])
    expect(results.map(({ duplicate }) => duplicate)).toEqual([false, false, false, true])
    await fake.settled()
    expect(client.received('message').map(({ key, payload }) => [key, payload])).toEqual([
      ['a.1', '{"n":1}'],
      ['a.3', Uint8Array.of(3)],
    ])
  })

  it('takes an empty batch', async () => {
    const fake = await FakeServer.start()
    expect(await fake.server.publishBatch([])).toEqual([])
  })

  it.each([
    [{ key: 'no*key', payload: 1 }, 'E_KEY_INVALID'],
    [{ key: 'k', payload: undefined }, 'E_PAYLOAD_INVALID'],
    [{ key: 'k', payload: 'x'.repeat(100) }, 'E_PAYLOAD_TOO_LARGE'],
    [{ key: 'k', payload: 1, id: 'no spaces' }, 'E_MESSAGE_INVALID'],
  ])('publishes nothing when one cannot be published, and says which: %j', async (bad, code) => {
    const fake = await FakeServer.start({ maxPayloadBytes: 100 })
    const client = await fake.listener('#')
    const refused = fake.server.publishBatch([{ key: 'k', payload: 0 }, bad])
    await expect(refused).rejects.toMatchObject({ code, message: expect.stringContaining('message 1 of the batch: ') })
    await fake.settled()
    expect(client.received('message')).toEqual([])
  })

  it('waits for a broker that answers later once, not per message', async () => {
    const broker = new SlowBroker(new MemoryBroker(memoryOptions()))
    const fake = await FakeServer.start({}, { broker })
    const published = fake.server.publishBatch([1, 2, 3].map((payload) => ({ key: 'k', payload })))
    await fake.settled()
    expect(broker.waitingCount).toBe(3)
    for (let count = 0; count < 3; count++) broker.release()
    expect(await published).toMatchObject([{ duplicate: false }, { duplicate: false }, { duplicate: false }])
  })

  it('rejects once with what the broker says, whether it throws or rejects', async () => {
    const fake = await FakeServer.start()
    const failures = [() => Promise.reject(new Error('first')), () => Promise.reject(new Error('second'))]
    vi.spyOn(fake.broker, 'publish').mockImplementation(() => {
      const fail = failures.shift()
      if (fail) return fail()
      throw new Error('third')
    })
    const batch = [1, 2, 3].map((payload) => ({ key: 'k', payload }))
    await expect(fake.server.publishBatch(batch)).rejects.toThrow(/first|second|third/)
  })

  it('refuses to work for a server that does not run', async () => {
    await expect(new FakeServer().server.publishBatch([])).rejects.toMatchObject({ code: 'E_NOT_RUNNING' })
  })
})

describe('what a publication costs at the native boundary', () => {
  const MULTICAST = 6
  const URGENT = 16

  /** A server whose multicasts are packed as for the native engine; what was handed over, call by call. */
  async function start(options?: ServerOptions) {
    const fake = await FakeServer.start(options)
    const calls: number[][] = []
    const flags = new Set<number>()
    const commands = new NativeCommands((packed, length) => {
      const kinds: number[] = []
      for (let at = 0; at < length; at += packed.readUInt32LE(at + 4)) {
        kinds.push(packed[at] ?? 0)
        flags.add(packed[at + 1] ?? 0)
      }
      calls.push(kinds)
    })
    vi.spyOn(fake.transport, 'multicast').mockImplementation((...call) => commands.multicast(...call))
    // However many listen: with one pattern, with several that match, in several connections.
    for (let count = 0; count < 3; count++) await fake.listener('bench.tick', 'bench.*', '#')
    return { fake, calls, flags }
  }

  const COUNT = 500
  const messages = Array.from({ length: COUNT }, (_, n) => ({ key: 'bench.tick', payload: { n } }))

  it('is one command, and all publications of a turn are one call', async () => {
    const { fake, calls } = await start()
    await Promise.all(messages.map(({ key, payload }) => fake.server.publish(key, payload)))
    await fake.settled()
    expect(calls).toEqual([Array(COUNT).fill(MULTICAST)])
  })

  it('is the same for a batch, and for publishes that are awaited one after the other', async () => {
    const { fake, calls } = await start()
    await fake.server.publishBatch(messages)
    await fake.settled()
    for (const { key, payload } of messages) await fake.server.publish(key, payload)
    await fake.settled()
    expect(calls).toEqual([Array(COUNT).fill(MULTICAST), Array(COUNT).fill(MULTICAST)])
  })

  it('is the same with a key that is urgent, and the command says so', async () => {
    const { fake, calls, flags } = await start({ urgent: ['bench.#'] })
    await fake.server.publishBatch(messages)
    await fake.settled()
    expect([calls, [...flags]]).toEqual([[Array(COUNT).fill(MULTICAST)], [URGENT]])
  })

  it('is the same for what clients publish in a turn', async () => {
    const { fake, calls } = await start()
    const client = await fake.connect()
    for (let n = 0; n < COUNT; n++) client.send({ verb: 'publish', key: 'bench.tick', echo: true, payload: `${n}` })
    await vi.waitFor(() => expect(calls.flat()).toEqual(Array(COUNT).fill(MULTICAST)))
    // A turn ends by the clock, too.
    expect(calls.length).toBeLessThan(COUNT / 10)
  })
})
