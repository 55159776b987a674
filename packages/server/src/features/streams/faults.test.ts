import { afterEach, describe, expect, it, vi } from 'vitest'
import { WebMQError, type WirePayload, type WriteKind } from 'webmq-client/protocol'
import type { FakeClient } from 'webmq-conformance'
import { FakeServer } from '../../../test/fake-server.js'
import { memoryOptions } from '../../../test/memory-options.js'
import { useOwnClock } from '../../../test/own-clock.js'
import { MemoryBroker } from '../../adapters/brokers/memory/broker.js'
import type { ServerOptions } from '../../doors/options/server-options.js'
import type { BrokerSink, OutboundMessage } from '../../kernel/ports/broker.js'
import { BrokerFilter } from '../../kernel/ports/broker-filter.js'

/** A broker whose parts a test breaks, and mends again. */
class BrokenBroker extends BrokerFilter {
  /** The node does not get what is published. */
  isDeaf = false
  /** What {@link read} throws. */
  readError: WebMQError | undefined
  /** Is called before each message. */
  beforePublish: (message: OutboundMessage) => Promise<void> | undefined = () => undefined
  sink: BrokerSink | undefined

  override start(sink: BrokerSink): Promise<void> {
    this.sink = { ...sink, deliver: (message) => this.isDeaf || sink.deliver(message) }
    return super.start(this.sink)
  }

  override read(...args: Parameters<BrokerFilter['read']>): ReturnType<BrokerFilter['read']> {
    if (this.readError !== undefined) throw this.readError
    return super.read(...args)
  }

  override publish(message: OutboundMessage): ReturnType<BrokerFilter['publish']> {
    const own = { ...message, payload: new Uint8Array(message.payload) }
    const before = this.beforePublish(own)
    return before === undefined ? super.publish(own) : before.then(() => super.publish(own))
  }
}

/** Longer than any machine takes for the rest of a test. */
const LONG_LEASE_MS = 600_000

const fakes: FakeServer[] = []
let sentCount = 0

afterEach(async () => {
  await Promise.all(fakes.splice(0).map((fake) => fake.server.stop({ drainMs: 0 })))
})

async function start(options: ServerOptions = {}): Promise<{ fake: FakeServer; broker: BrokenBroker }> {
  const all = { history: ['#=100000'], ...options }
  const broker = new BrokenBroker(new MemoryBroker(memoryOptions(all)))
  const fake = await FakeServer.start(all, { broker })
  fakes.push(fake)
  return { fake, broker }
}

/** Writes a message of the stream `of-<key>`. @returns A function that waits for the answer: `ok`, or the code of the error. */
function send(client: FakeClient, key: string, sequence: number, kind: WriteKind, payload: WirePayload = '', of = '') {
  const id = `m${++sentCount}`
  client.send({ verb: 'stream', id, key, stream: `of-${key}${of}`, sequence, kind, payload })
  return () =>
    vi.waitFor(() => {
      const answer = client.messages.find((message) => 'id' in message && message.id === id)
      if (answer === undefined) throw new Error('no answer')
      return answer.verb === 'error' ? answer.code : answer.verb
    })
}

describe('a watch', () => {
  it('folds the log by itself after a gap at which the log could not be read', async () => {
    const { fake, broker } = await start()
    const writer = await fake.server.stream('a')
    await writer.append('one ')
    broker.readError = new WebMQError('E_BROKER_UNAVAILABLE')
    broker.isDeaf = true
    const second = writer.append('two ')
    broker.sink?.gap('broker-lost')
    await vi.waitFor(async () => expect((await broker.position())?.offset).toBeGreaterThanOrEqual(3))
    broker.isDeaf = false
    broker.readError = undefined
    await second
    await writer.append('three')
    expect(fake.server.stats().streams.keptBytes).toBeGreaterThan(2 * 'one two three'.length)
    await writer.end()
    expect(await fake.server.readStream('a')).toMatchObject({ text: 'one two three', isCut: false, status: 'end' })
  })

  it('does so though nobody writes or reads', async () => {
    const { fake, broker } = await start()
    const client = await fake.connect()
    await send(client, 'a', 0, 'start')()
    const { keptBytes } = fake.server.stats().streams
    broker.readError = new WebMQError('E_BROKER_UNAVAILABLE')
    broker.isDeaf = true
    const payload = Buffer.from(JSON.stringify('x'.repeat(1_000)))
    await broker.publish({ key: 'a', payload, isBinary: false, attributes: { stream: 'of-a:1:append' } })
    broker.sink?.gap('broker-lost')
    broker.isDeaf = false
    await fake.settled()
    expect(fake.server.stats().streams.keptBytes).toBe(keptBytes)
    broker.readError = undefined
    await vi.waitFor(() => expect(fake.server.stats().streams.keptBytes).toBeGreaterThan(keptBytes + 1_000))
  })

  it('ends a stream that has lost its writer once the broker takes the end, warns once and counts', async () => {
    const { fake, broker } = await start({ streamLeaseMs: 1_000 })
    const client = await fake.connect()
    for (const key of ['a', 'b']) expect(await send(client, key, 0, 'start')()).toBe('ok')
    broker.beforePublish = () => Promise.reject(new WebMQError('E_BROKER_UNAVAILABLE'))
    await vi.waitFor(() => expect(fake.server.stats().streams.lostFailedCount).toBeGreaterThanOrEqual(4))
    expect(fake.log.filter(({ message }) => message?.includes('could not be ended'))).toMatchObject([{ level: 'warn' }])
    broker.beforePublish = () => undefined
    await vi.waitFor(() => expect(fake.server.stats().streams).toMatchObject({ activeCount: 0, lostCount: 2 }))
  })

  // Symptom: a node that stood still for its lease ended the streams of writers that were there. Cause: the lease ran meanwhile, and
  // fired before what had arrived was read.
  it('does not count the time in which the process stands still', async () => {
    const { fake } = await start({ streamLeaseMs: 1_000 })
    const client = await fake.connect()
    await send(client, 'a', 0, 'start')()
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500)
    // Timers fire first, then the sockets are read.
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(await send(client, 'a', 0, 'beat')()).toBe('ok')
    expect(await send(client, 'a', 1, 'append', '"x"')()).toBe('ok')
    expect(fake.server.stats().streams.lostCount).toBe(0)
    await vi.waitFor(() => expect(fake.server.stats().streams.lostCount).toBe(1), { timeout: 5_000 })
  })

  it('begins the lease anew after a gap, which beats may have fallen into', async () => {
    const { fake, broker } = await start({ streamLeaseMs: 1_000 })
    const client = await fake.connect()
    await send(client, 'a', 0, 'start')()
    await new Promise((resolve) => setTimeout(resolve, 900))
    broker.sink?.gap('broker-lost')
    await new Promise((resolve) => setTimeout(resolve, 600))
    expect(await send(client, 'a', 1, 'append', '"x"')()).toBe('ok')
    expect(fake.server.stats().streams.lostCount).toBe(0)
  })

  // Symptom: when a clock was set forward by more than the lease, quiet streams ended; set back, none did.
  it.each([3_600_000, -3_600_000])('does not count a clock that is set by %i ms', async (stepMs) => {
    const { fake } = await start({ streamLeaseMs: 1_000 })
    const client = await fake.connect()
    await send(client, 'a', 0, 'start')()
    const real = Date.now
    const set = vi.spyOn(Date, 'now').mockImplementation(() => real() + stepMs)
    try {
      const busy = { code: 'E_STREAM_BUSY', retryAfterMs: expect.closeTo(700, -3) }
      await expect(fake.server.stream('a')).rejects.toMatchObject(busy)
      for (let third = 0; third < 6; third++) {
        await new Promise((resolve) => setTimeout(resolve, 333))
        expect(await send(client, 'a', 0, 'beat')()).toBe('ok')
      }
      expect(fake.server.stats().streams.lostCount).toBe(0)
      await vi.waitFor(() => expect(fake.server.stats().streams.lostCount).toBe(1), { timeout: 5_000 })
    } finally {
      set.mockRestore()
    }
  })

  it('keeps lease and owner of a stream whose text takes too much memory', async () => {
    const clock = useOwnClock()
    const large = 40 * 1_048_576
    const { fake } = await start({
      streamLeaseMs: LONG_LEASE_MS,
      maxStreamsPerUser: 2,
      maxStreamBytes: large,
      maxOutboxBytes: 2 * large,
      maxPayloadBytes: large,
      historyMaxBytes: 8 * large,
    })
    const client = await fake.connect()
    const text = JSON.stringify('x'.repeat(large / 2))
    for (const key of ['a', 'b']) {
      expect(await send(client, key, 0, 'start', '{"of":1}')()).toBe('ok')
      expect(await send(client, key, 1, 'append', text)()).toBe('ok')
    }
    expect(fake.server.stats().streams).toMatchObject({ activeCount: 2 })
    expect(fake.server.stats().streams.keptBytes).toBeLessThan(64 * 1_048_576)
    expect(await send(client, 'c', 0, 'start')()).toBe('E_STREAM_LIMIT')
    // It goes on, and whoever reads it has all of it.
    expect(await send(client, 'a', 2, 'append', '"."')()).toBe('ok')
    const read = await fake.server.readStream('a')
    expect(read).toMatchObject({ isCut: false, meta: { of: 1 } })
    expect(read.text === `${'x'.repeat(large / 2)}.`).toBe(true)
    clock.putForward(LONG_LEASE_MS + 1_000)
    await vi.waitFor(() => expect(fake.server.stats().streams).toMatchObject({ activeCount: 0, lostCount: 2 }))
    expect(await send(client, 'c', 0, 'start')()).toBe('ok')
  })

  it('counts the stream that wins a key as one of its user, and the loser not', async () => {
    const { fake, broker } = await start({ maxStreamsPerUser: 1, insecure: true })
    const [first, second] = [
      await fake.connect({ remoteAddress: '192.0.2.1' }),
      await fake.connect({ remoteAddress: '192.0.2.2' }),
    ]
    let release: (() => void) | undefined
    broker.beforePublish = () =>
      new Promise((resolve) => {
        release = resolve
      })
    const lost = send(first, 'a', 0, 'start', '', '1')
    await vi.waitFor(() => expect(release).toBeDefined())
    broker.beforePublish = () => undefined
    expect(await send(second, 'a', 0, 'start', '', '2')()).toBe('ok')
    release?.()
    expect(await lost()).toBe('E_STREAM_BUSY')
    expect(await send(second, 'b', 0, 'start')()).toBe('E_STREAM_LIMIT')
    expect(await send(second, 'a', 0, 'start', '', '2')()).toBe('ok')
    expect(await send(first, 'b', 0, 'start')()).toBe('ok')
    expect(await send(second, 'a', 1, 'end', '', '2')()).toBe('ok')
    expect(await send(second, 'c', 0, 'start')()).toBe('ok')
  })

  it('takes 64 messages that wait, and refuses more until they are answered', async () => {
    const { fake, broker } = await start()
    const client = await fake.connect()
    expect(await send(client, 'a', 0, 'start')()).toBe('ok')
    const releases: (() => void)[] = []
    broker.beforePublish = () => new Promise((resolve) => releases.push(resolve))
    const answers = Array.from({ length: 100 }, (_, index) => send(client, 'a', index + 1, 'append', '"x"'))
    await vi.waitFor(() => expect(releases).toHaveLength(64))
    expect(await answers[99]?.()).toBe('E_RATE_LIMIT')
    for (const release of releases) release()
    broker.beforePublish = () => undefined
    expect(await answers[63]?.()).toBe('ok')
    expect(await send(client, 'a', 65, 'append', '"."')()).toBe('ok')
    expect(await fake.server.readStream('a')).toMatchObject({ text: `${'x'.repeat(64)}.`, isCut: false })
  })

  // A lone append of 128 KiB was refused for ever with E_BROKER_UNAVAILABLE. It counted as pending twice: for itself, and as a publish.
  it('takes a lone message as large as it may be, however little may wait for the broker', async () => {
    const { fake, broker } = await start({ brokerMaxPendingBytes: 262_144 })
    const client = await fake.connect()
    const payload = JSON.stringify('x'.repeat(262_000))
    expect(await send(client, 'a', 0, 'start')()).toBe('ok')
    expect(await send(client, 'a', 1, 'append', payload)()).toBe('ok')
    // Also while the broker takes its time, and then no other one.
    let release: (() => void) | undefined
    broker.beforePublish = () =>
      new Promise((resolve) => {
        release = resolve
      })
    const waiting = send(client, 'b', 0, 'start', payload)
    await vi.waitFor(() => expect(release).toBeDefined())
    expect(await send(client, 'a', 2, 'append', payload)()).toBe('E_BROKER_UNAVAILABLE')
    broker.beforePublish = () => undefined
    release?.()
    expect(await waiting()).toBe('ok')
    expect(await send(client, 'b', 1, 'end')()).toBe('ok')
  })

  it('is refused beyond the limit of a node, whoever asks: none that has a lease is given up', async () => {
    const { fake } = await start({ maxStreamsPerNode: 1 })
    const client = await fake.connect()
    expect(await send(client, 'a', 0, 'start')()).toBe('ok')
    expect(await send(client, 'b', 0, 'start')()).toBe('E_STREAM_LIMIT')
    // What has no writer takes no room.
    expect(await fake.server.readStream('b')).toMatchObject({ id: undefined })
    expect(await send(client, 'a', 1, 'end')()).toBe('ok')
    expect(await send(client, 'b', 0, 'start')()).toBe('ok')
    expect(await fake.server.readStream('a')).toMatchObject({ status: 'end' })
  })

  it('becomes one message by its first reader, when the node of its writer has died before', async () => {
    const { fake, broker } = await start()
    for (const [place, payload] of [
      ['0:start', ''],
      ['1:append', '"Once"'],
      ['2:append', '" upon"'],
      ['3:end', '7'],
    ] as const)
      await broker.publish({
        key: 'a',
        payload: Buffer.from(payload),
        isBinary: false,
        attributes: { stream: `of-a:${place}` },
      })
    const history = async () => (await fake.server.history('a')).messages.map(({ payload }) => payload)
    expect(await history()).toHaveLength(4)
    expect(await fake.server.readStream('a')).toMatchObject({ text: 'Once upon', status: 'end', result: 7 })
    await vi.waitFor(async () => expect(await history()).toEqual(['Once upon']))
  })

  it('stays as its appends when it is larger than a message, and says so', async () => {
    const { fake } = await start({ maxPayloadBytes: 4_096 })
    for (const key of ['a', 'b']) {
      const writer = await fake.server.stream(key)
      for (let index = 0; index < 3; index++) await writer.append('x'.repeat(600 * (index + 2)))
      await writer.end()
      expect(await fake.server.readStream(key)).toMatchObject({ text: 'x'.repeat(5_400), status: 'end', isCut: false })
    }
    expect(fake.server.stats().streams.rollUpFailedCount).toBe(2)
    expect(fake.log.filter(({ message }) => message?.includes('stays as its appends'))).toHaveLength(1)
  })
})
