import { describe, expect, it, vi } from 'vitest'
import { WebMQError } from 'webmq-client/protocol'
import type { FakeClient } from 'webmq-conformance'
import { FakeServer } from '../../../../test/fake-server.js'
import { FaultyBroker } from '../../../../test/faulty-broker.js'
import { memoryOptions } from '../../../../test/memory-options.js'
import { SlowBroker } from '../../../../test/slow-broker.js'
import { MemoryBroker } from '../../../adapters/brokers/memory/broker.js'
import type { ServerOptions } from '../../../doors/options/server-options.js'
import { formatPosition } from '../../ports/position.js'

const payloads = (client: FakeClient) => client.received('message').map(({ payload }) => payload)
const replayed = (client: FakeClient) => client.received('message').map(({ replayed }) => replayed)

async function publishAll(fake: FakeServer, ...texts: string[]): Promise<string[]> {
  const positions: string[] = []
  for (const text of texts) positions.push((await fake.server.publish('k.a', text)).position ?? 'none')
  return positions
}

describe('listen', () => {
  it('answers with the position from which on everything comes', async () => {
    const fake = await FakeServer.start()
    const [before = 'none'] = await publishAll(fake, 'before')
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'listen', id: 'l', pattern: 'k.*' })
    await fake.settled()
    await publishAll(fake, 'after')
    expect(client.messages[0]).toEqual({ verb: 'ok', id: 'l', position: before })
    expect(payloads(client)).toEqual(['"after"'])
  })

  it('replays what came after a position, then goes on live, in order and without a seam', async () => {
    const fake = await FakeServer.start()
    const [first = 'none', , third = 'none'] = await publishAll(fake, '1', '2', '3')
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'listen', id: 'l', pattern: 'k.#', since: first })
    client.send({ verb: 'publish', key: 'k.a', echo: true, payload: '"4"' })
    await fake.settled()
    expect(client.messages[0]).toEqual({ verb: 'ok', id: 'l', position: third, recovered: true, replayed: 2 })
    expect(payloads(client)).toEqual(['"2"', '"3"', '"4"'])
    expect(replayed(client)).toEqual([true, true, false])
  })

  it('replays the last messages that match', async () => {
    const fake = await FakeServer.start()
    await publishAll(fake, '1', '2', '3')
    await fake.server.publish('other', 'other')
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'listen', id: 'l', pattern: 'k.a', last: 2 })
    await fake.settled()
    expect(client.messages[0]).toEqual({ verb: 'ok', id: 'l', position: await fake.position(), replayed: 2 })
    expect(payloads(client)).toEqual(['"2"', '"3"'])
  })

  it('misses nothing and repeats nothing when messages arrive while it reads a long log', async () => {
    const fake = await FakeServer.start({ history: ['#=1000000'], historyMaxMessages: 200_000 })
    const [first = 'none'] = await publishAll(fake, '1', '2')
    await fake.server.publishBatch(Array.from({ length: 60_000 }, () => ({ key: 'other', payload: 0 })))
    const [other, client, newest] = [await fake.connect(), await fake.connect(), await fake.connect()]
    for (const each of [client, newest, other]) each.clear()
    client.send({ verb: 'listen', id: 'l', pattern: 'k.#', since: first })
    newest.send({ verb: 'listen', id: 'l', pattern: 'k.#', last: 5 })
    await fake.transport.settled()
    expect(client.messages).toEqual([])
    other.send({ verb: 'ping' })
    await fake.settled()
    expect(other.received('pong')).toHaveLength(1)
    let count = 2
    const publishNext = () => publishAll(fake, `${++count}`)
    const answers = () => [client, newest].flatMap((each) => each.received('ok'))
    for (let turn = 0; turn < 10_000 && answers().length < 2; turn++) {
      await publishNext()
      await new Promise((resolve) => setImmediate(resolve))
    }
    await publishNext()
    const all = Array.from({ length: count }, (_, index) => `"${index + 1}"`)
    expect(payloads(client)).toEqual(all.slice(1))
    expect(answers()[0]).toMatchObject({ verb: 'ok', recovered: true })
    expect(payloads(newest).length).toBeGreaterThan(5)
    expect(payloads(newest)).toEqual(all.slice(-payloads(newest).length))
    expect(replayed(client)[0]).toBe(true)
    expect(replayed(client).at(-1)).toBe(false)
  })

  it.each<[string, ServerOptions, string, string, string[]]>([
    ['epoch-changed', {}, 'another:7', 'epoch-changed', ['"1"', '"2"', '"3"']],
    ['epoch-changed', {}, '0.a:7,13.b:5', 'epoch-changed', ['"1"', '"2"', '"3"']],
    ['history-expired', { historyMaxMessages: 1 }, 'first', 'history-expired', ['"3"']],
    ['no-history', { historyMaxMessages: 0 }, 'another:7', 'no-history', []],
  ])('says gap=%s and replays what there is', async (_name, options, since, gap, expected) => {
    const fake = await FakeServer.start(options)
    const [first = ''] = await publishAll(fake, '1', '2', '3')
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'listen', id: 'l', pattern: 'k.#', since: since === 'first' ? first : since })
    await fake.settled()
    expect(client.received('ok')).toMatchObject([{ gap, replayed: expected.length }])
    expect(client.received('ok')[0]).not.toHaveProperty('recovered')
    expect(payloads(client)).toEqual(expected)
  })

  it('replays in pages of no more than half of what may wait for the connection, and is live with the last', async () => {
    const fake = await FakeServer.start({ maxOutboxBytes: 16_384, maxPayloadBytes: 1_000 })
    const texts = Array.from({ length: 20 }, (_, index) => `${index}`.padEnd(870))
    let [since = ''] = await publishAll(fake, ...texts)
    const client = await fake.connect()
    client.clear()
    const pages: unknown[] = []
    for (let id = 1, hasMore = true; hasMore && id < 10; id++) {
      client.send({ verb: 'listen', id: `${id}`, pattern: 'k.#', since })
      const ok = await vi.waitFor(() => {
        const answer = client.received('ok').at(-1)
        if (answer?.id !== `${id}`) throw new Error('no answer yet')
        return answer
      })
      pages.push([ok.replayed, ok.recovered, ok.gap])
      hasMore = ok.more === true
      since = ok.position ?? ''
      expect(fake.server.stats().patternCount).toBe(hasMore ? 0 : 1)
    }
    expect(pages[0]).toEqual([8, true, undefined])
    expect(pages.every((page) => Array.isArray(page) && page[1] === true)).toBe(true)
    await publishAll(fake, 'live')
    expect(payloads(client).map((payload) => JSON.parse(payload as string).trim())).toEqual([
      ...texts.slice(1).map((text) => text.trim()),
      'live',
    ])
  })

  it('brings several listens live page by page, without waiting for time', { timeout: 12_000 }, async () => {
    // Symptom: five listens that resumed together took 15 s where one took 0.4 s. Cause: a page that waited for the
    // connection's allowance held the requests for the next pages, whose arrival would have given it back.
    const fake = await FakeServer.start({ maxOutboxBytes: 16_384, maxPayloadBytes: 1_000 })
    const patterns = ['0', '1', '2', '3', '4'].map((word) => `k.${word}`)
    const texts = Array.from({ length: 40 }, (_, index) => `${index}`.padEnd(870))
    for (const pattern of patterns) for (const text of texts) await fake.server.publish(pattern, text)
    const client = await fake.connect()
    client.clear()
    const live: string[] = []
    const answered = new Set<string>()
    const ask = (pattern: string, page: number, range: object) =>
      client.send({ verb: 'listen', id: `${pattern.at(-1)}-${page}`, pattern, ...range })
    for (const pattern of patterns) ask(pattern, 0, { last: texts.length })
    for (let turn = 0; live.length < patterns.length; turn++) {
      expect(turn).toBeLessThan(1_000)
      await fake.settled()
      for (const { id = '', more, position } of client.received('ok')) {
        if (answered.has(id)) continue
        answered.add(id)
        const [word, page] = id.split('-')
        if (more) ask(`k.${word}`, Number(page) + 1, { since: position })
        else live.push(`k.${word}`)
      }
    }
    for (const pattern of patterns) {
      const got = client.received('message').filter(({ key }) => key === pattern)
      expect(got.map(({ payload }) => JSON.parse(payload as string))).toEqual(texts)
    }
  })

  it('handles other messages of the connection while a replay waits for its client to read', async () => {
    const fake = await FakeServer.start({
      maxOutboxBytes: 16_384,
      maxPayloadBytes: 1_000,
      history: ['k.#=100', 'l.#=100'],
    })
    for (let index = 0; index < 20; index++) await fake.server.publish('k.a', `${index}`.padEnd(870))
    await fake.server.publish('l.a', 'old')
    const client = await fake.connect()
    client.stopReading()
    client.clear()
    client.send({ verb: 'listen', id: 'fills', pattern: 'k.#', last: 20 })
    client.send({ verb: 'listen', id: 'waits', pattern: 'l.#', last: 5 })
    client.send({ verb: 'listen', id: 'loses', pattern: '*', last: 5 })
    client.send({ verb: 'unlisten', id: 'after', pattern: 'l.#' })
    client.send({ verb: 'publish', id: 'logged', key: 'l.a', echo: true, payload: '"own"' })
    client.send({ verb: 'publish', id: 'unlogged', key: 'other', echo: true, payload: '"own"' })
    client.send({ verb: 'listen', id: 'plain', pattern: 'm' })
    await fake.settled()
    expect(client.messages.flatMap((message) => ('id' in message ? [message.id] : []))).toEqual([
      'fills',
      'logged',
      'plain',
    ])
    client.readOn()
    await fake.settled()
    client.send({ verb: 'ping' })
    await fake.settled()
    const own = client.received('message').filter(({ payload }) => payload === '"own"')
    // One of them by the replay, the other one live.
    expect(own.map(({ key, replayed }) => [key, replayed])).toEqual([
      ['l.a', true],
      ['other', false],
    ])
    const ids = client.received('ok').map(({ id }) => id)
    expect(ids.slice(0, 4)).toEqual(['fills', 'logged', 'plain', 'waits'])
    // Two patterns have no order.
    expect(ids.slice(4).toSorted()).toEqual(['after', 'loses', 'unlogged'])
    expect(ids.indexOf('unlogged')).toBeGreaterThan(ids.indexOf('loses'))
  })

  it('checks a listen again that has waited', async () => {
    const fake = await FakeServer.start({ maxOutboxBytes: 16_384, maxPayloadBytes: 1_000, maxListensPerConnection: 1 })
    for (let index = 0; index < 20; index++) await fake.server.publish('k.a', `${index}`.padEnd(870))
    const client = await fake.connect()
    client.stopReading()
    client.clear()
    client.send({ verb: 'listen', id: 'fills', pattern: 'k.#', last: 20 })
    client.send({ verb: 'listen', id: 'waits', pattern: 'l', last: 5 })
    // Takes the only place while the other one waits.
    client.send({ verb: 'listen', id: 'plain', pattern: 'm' })
    await fake.settled()
    client.readOn()
    await fake.settled()
    expect(client.received('error')).toMatchObject([{ id: 'waits', code: 'E_LISTEN_LIMIT' }])
    expect(fake.server.stats().patternCount).toBe(1)
  })

  it('sends a message that is larger than its page, alone', async () => {
    const fake = await FakeServer.start({ maxOutboxBytes: 16_384, maxPayloadBytes: 10_000 })
    await publishAll(fake, 'a'.padEnd(9_000), 'b'.padEnd(9_000))
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'listen', id: '1', pattern: 'k.#', last: 2 })
    await fake.settled()
    expect(client.received('ok')).toMatchObject([{ replayed: 1, more: true }])
  })

  it.each([
    [{ rewindMs: 60_000 }, ['1', '2', '3']],
    [{ rewindMs: 0 }, []],
    [{ last: 2 }, ['2', '3']],
  ])('begins with %j', async (range, texts) => {
    const fake = await FakeServer.start()
    await publishAll(fake, '1', '2', '3')
    await new Promise((resolve) => setTimeout(resolve, 2))
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'listen', id: '1', pattern: 'k.#', ...range })
    await fake.settled()
    expect(client.received('ok')).toMatchObject([{ replayed: texts.length }])
    expect(client.received('ok')[0]).not.toHaveProperty('more')
    expect(payloads(client).map((payload) => JSON.parse(payload as string))).toEqual(texts)
  })

  it('says no-history to who resumes a pattern of which not everything is logged', async () => {
    const fake = await FakeServer.start({ history: ['k.#=100'] })
    const [first = ''] = await publishAll(fake, '1', '2')
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'listen', id: '1', pattern: '#', since: first })
    client.send({ verb: 'listen', id: '2', pattern: 'k.*', since: first })
    await fake.settled()
    expect(client.received('ok')).toMatchObject([
      { id: '1', gap: 'no-history', replayed: 1 },
      { id: '2', recovered: true, replayed: 1 },
    ])
  })

  it('is idempotent: a second listen with a pattern is answered again and delivers nothing twice', async () => {
    const fake = await FakeServer.start({ maxListensPerConnection: 1 })
    const client = await fake.listener('k.*')
    client.send({ verb: 'listen', id: 'again', pattern: 'k.*' })
    await fake.settled()
    await publishAll(fake, '1')
    expect(client.messages.map(({ verb }) => verb)).toEqual(['ok', 'message'])
    client.send({ verb: 'unlisten', id: 'u', pattern: 'k.*' })
    await fake.settled()
    client.clear()
    await publishAll(fake, '2')
    expect(client.messages).toEqual([])
  })

  it('keeps a live listen live between the pages of a later replay of its pattern [P-6.10]', async () => {
    const fake = await FakeServer.start()
    const texts = Array.from({ length: 600 }, (_, index) => `${index}`)
    const [since = ''] = await publishAll(fake, ...texts)
    const client = await fake.listener('k.*')
    client.send({ verb: 'listen', id: 'first', pattern: 'k.*', since })
    await fake.settled()
    const [ok] = client.received('ok')
    expect(ok).toMatchObject({ id: 'first', replayed: 500, more: true })
    client.clear()
    await publishAll(fake, 'live')
    expect(client.received('message').map(({ payload, replayed }) => [payload, replayed])).toEqual([['"live"', false]])
    client.clear()
    client.send({ verb: 'listen', id: 'second', pattern: 'k.*', since: ok?.position ?? '' })
    await fake.settled()
    expect(client.received('ok')[0]).toMatchObject({ id: 'second', replayed: 100, recovered: true })
    expect(payloads(client).at(-1)).toBe('"live"')
    await publishAll(fake, 'later')
    expect([payloads(client).at(-1), replayed(client).at(-1)]).toEqual(['"later"', false])
  })

  it('refuses more listens than the limit, and takes another once one has ended', async () => {
    const fake = await FakeServer.start({ maxListensPerConnection: 2 })
    const client = await fake.listener('a', 'b')
    client.send({ verb: 'listen', id: '1', pattern: 'c' })
    client.send({ verb: 'unlisten', id: '2', pattern: 'a' })
    client.send({ verb: 'listen', id: '3', pattern: 'c' })
    await fake.settled()
    expect(client.messages).toMatchObject([
      {
        verb: 'error',
        id: '1',
        code: 'E_LISTEN_LIMIT',
        message: expect.stringMatching(/: c: at most 2 \(maxListensPer/),
      },
      { verb: 'ok', id: '2' },
      { verb: 'ok', id: '3' },
    ])
  })

  it('refuses a position that is none, and listens to nothing then', async () => {
    const fake = await FakeServer.start()
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'listen', id: 'l', pattern: 'k.#', since: 'nonsense' })
    await fake.settled()
    await publishAll(fake, '1')
    expect(client.messages).toMatchObject([{ verb: 'error', id: 'l', code: 'E_POSITION_INVALID' }])
    expect(fake.server.stats().patternCount).toBe(0)
  })

  it('refuses a position beyond the end of the log, and gives nothing of the log', async () => {
    const fake = await FakeServer.start()
    const [first = ''] = await publishAll(fake, '1')
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'listen', id: 'l', pattern: 'k.#', since: `${first.slice(0, first.indexOf(':'))}:zz` })
    await fake.settled()
    expect(client.messages).toMatchObject([{ verb: 'error', id: 'l', code: 'E_POSITION_INVALID' }])
  })

  it('refuses a queue group that the broker does not have', async () => {
    const fake = await FakeServer.start({}, { broker: new FaultyBroker() })
    const client = await fake.connect()
    client.clear()
    client.send({ verb: 'listen', id: 'l', pattern: 'k', group: 'workers' })
    await fake.settled()
    expect(client.messages).toMatchObject([{ verb: 'error', id: 'l', code: 'E_UNSUPPORTED' }])
  })

  it('lets everything go that a connection listened with when it closes', async () => {
    const fake = await FakeServer.start()
    const client = await fake.listener('a', 'b.*', 'c.#')
    expect(fake.server.stats()).toMatchObject({ connectionCount: 1, patternCount: 3 })
    client.drop()
    await fake.settled()
    expect(fake.server.stats()).toMatchObject({ connectionCount: 0, patternCount: 0 })
  })
})

describe('listen on a broker that takes its time', () => {
  async function start(options: ServerOptions = {}) {
    const memory = new MemoryBroker(memoryOptions(options))
    const broker = new SlowBroker(memory)
    const fake = await FakeServer.start(options, { broker })
    const publish = (text: string) => {
      const payload = new TextEncoder().encode(text)
      const { position } = memory.publish({ key: 'k', payload, isBinary: false })
      return position === undefined ? 'none' : formatPosition(position)
    }
    const release = async (count: number) => {
      for (let index = 0; index < count; index++) {
        await fake.settled()
        broker.release()
      }
      await fake.settled()
    }
    const client = await fake.connect()
    client.clear()
    return { broker, fake, publish, release, client }
  }

  it('misses nothing and repeats nothing of what comes while the log is read', async () => {
    const { publish, release, client } = await start()
    const first = publish('1')
    publish('2')
    client.send({ verb: 'listen', id: 'l', pattern: 'k', since: first })
    // The first look whether there is more than a page, then the binding.
    await release(2)
    const third = publish('3')
    await release(1)
    publish('4')
    expect(client.messages[0]).toEqual({ verb: 'ok', id: 'l', position: third, recovered: true, replayed: 2 })
    expect(payloads(client)).toEqual(['2', '3', '4'])
    expect(replayed(client)).toEqual([true, true, false])
  })

  it('names a position after everything that it did not deliver', async () => {
    const { publish, release, client } = await start()
    client.send({ verb: 'listen', id: 'l', pattern: 'k' })
    await release(1)
    const during = publish('during')
    await release(1)
    expect(client.messages).toEqual([{ verb: 'ok', id: 'l', position: during }])
  })

  it('handles what a connection sends in order, behind the listen that waits', async () => {
    const { fake, release, client } = await start()
    client.send({ verb: 'listen', id: '1', pattern: 'k' })
    client.send({ verb: 'publish', id: '2', key: 'k', echo: true, payload: '"own"' })
    client.send({ verb: 'unlisten', id: '3', pattern: 'k' })
    client.send({ verb: 'ping' })
    await fake.settled()
    expect(client.messages.map(({ verb }) => verb)).toEqual(['pong'])
    // What the pong has asked for is among them.
    await release(4)
    expect(client.messages.map((message) => ('id' in message ? message.id : message.verb))).toEqual([
      'pong',
      '1',
      'message',
      '3',
      '2',
    ])
    expect(fake.server.stats().patternCount).toBe(0)
  })

  it('refuses what no longer fits behind a listen that waits', async () => {
    const { release, client } = await start()
    client.send({ verb: 'listen', id: 'l', pattern: 'k' })
    for (let index = 0; index < 1_025; index++) client.send({ verb: 'unlisten', id: `u${index}`, pattern: 'x' })
    await vi.waitFor(() => expect(client.received('error')).toHaveLength(1))
    expect(client.received('error')).toMatchObject([{ id: 'u1024', code: 'E_BROKER_UNAVAILABLE', retryable: true }])
    await release(2)
    await vi.waitFor(() => expect(client.received('error')).toHaveLength(1_025))
  })

  it('sends the connection on when the node is behind, at the first look and at the second', async () => {
    // At the second look the pattern is bound.
    for (const releasedBefore of [0, 1]) {
      const { broker, fake, publish, release, client } = await start()
      const since = publish('1')
      publish('2')
      const behind = new WebMQError('E_NODE_BEHIND')
      if (releasedBefore === 0) broker.failure = behind
      client.send({ verb: 'listen', id: 'l', pattern: 'k', since })
      client.send({ verb: 'listen', id: 'm', pattern: 'k.*', since })
      await release(releasedBefore)
      if (releasedBefore > 0) broker.failure = behind
      await release(4)
      expect(client.messages).toEqual([{ verb: 'bye', code: 4012, retryAfterMs: expect.any(Number) }])
      expect(client.received('bye')[0]?.retryAfterMs).toBeLessThanOrEqual(500)
      expect(client.closure?.code).toBe(4012)
      expect(fake.server.stats().patternCount).toBe(0)
    }
  })

  it('forgets the listen of a connection that has gone meanwhile', async () => {
    const { fake, release, client } = await start()
    client.send({ verb: 'listen', id: 'l', pattern: 'k' })
    await release(1)
    client.drop()
    await release(1)
    expect(fake.server.stats()).toMatchObject({ connectionCount: 0, patternCount: 0 })
  })

  it('says so when the broker cannot be reached, and listens to nothing then', async () => {
    const { broker, fake, release, client } = await start()
    const failure = new Error('a bug that tells secrets')
    broker.failure = failure
    client.send({ verb: 'listen', id: 'l', pattern: 'k' })
    await release(1)
    expect(client.messages).toMatchObject([{ verb: 'error', id: 'l', code: 'E_INTERNAL', message: 'internal error' }])
    expect(fake.log.find(({ level }) => level === 'error')?.fields).toMatchObject({ err: failure })
    expect(fake.server.stats().patternCount).toBe(0)
    client.send({ verb: 'listen', id: 'again', pattern: 'k' })
    await release(2)
    expect(client.received('ok')).toMatchObject([{ id: 'again' }])
  })
})
