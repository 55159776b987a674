import { cp, rm } from 'node:fs/promises'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import { headers } from '@nats-io/transport-node'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { historyOf, messageIdOf } from 'webmq-conformance'
import { type SharedService, sharedService, startFaultProxy } from 'webmq-services'
import {
  askJetStream,
  freshNamespace,
  logged,
  ownFolder,
  plainClient,
  privateNats,
  startNode,
  text,
} from './nats-node.js'

const FLOOD_COUNT = 1_000
/** Publishes 64 MB, and waits for the server to have read that and to lose its patience with who does not. */
const FLOOD = `
  const { connect } = require('node:net')
  const { workerData: { port, isDone } } = require('node:worker_threads')
  const socket = connect(port, '127.0.0.1', () => {
    socket.write('CONNECT {"verbose":false}\\r\\n')
    for (let number = 0; number < ${FLOOD_COUNT}; number++) {
      const payload = String(number).padEnd(64000)
      socket.write('PUB webmq.flood 64000\\r\\n' + payload + '\\r\\n')
    }
    socket.write('PING\\r\\n')
  })
  socket.on('data', (bytes) => {
    if (bytes.includes('PONG')) setTimeout(() => { Atomics.store(isDone, 0, 1); Atomics.notify(isDone, 0) }, 1500)
  })
`

let service: SharedService

beforeAll(async () => {
  service = await sharedService('nats')
})

/** A namespace whose stream goes with the test. */
function ownNamespace(): string {
  const namespace = freshNamespace()
  onTestFinished(async () => void (await askJetStream(service, `STREAM.DELETE.${namespace}-log`)))
  return namespace
}

const streamOf = (namespace: string) => askJetStream(service, `STREAM.INFO.${namespace}-log`)

describe('log of nats, its stream', () => {
  it('has the subjects of the rules and their bounds', async () => {
    const brokerNamespace = ownNamespace()
    const history = {
      ...historyOf('chat.#=100,10m', 'news.*=10,1h'),
      historyMaxMessages: 500,
      historyMaxBytes: 100_000,
      dedupeMaxIds: 500,
    }
    await startNode({ broker: service.url, brokerNamespace, ...history })
    const { config } = await streamOf(brokerNamespace)
    expect(config).toMatchObject({
      subjects: ['$log', 'chat', 'chat.>', 'news.*'].map((subject) => `${brokerNamespace}.${subject}`),
      storage: 'file',
      retention: 'limits',
      discard: 'old',
      max_msgs: 500,
      max_bytes: 100_000,
      max_age: 3_600 * 1e9,
      duplicate_window: 60 * 1e9,
      num_replicas: 1,
    })
  })

  it('is fitted to the rules and bounds of the node that comes last, and keeps what others log', async () => {
    const brokerNamespace = ownNamespace()
    const one = await startNode({ broker: service.url, brokerNamespace, ...historyOf('a=10') })
    const other = await startNode({
      broker: service.url,
      brokerNamespace,
      ...historyOf('b.#=10', 'b.x.*=10', '*.*.c=10'),
      historyMaxMessages: 77,
      dedupeMaxIds: 0,
    })
    const { config } = await streamOf(brokerNamespace)
    expect(config).toMatchObject({ max_msgs: 77 })
    other.sink.isListening = false
    for (const { broker, sink } of [one, other]) {
      sink.isListening = true
      await broker.bind('#')
      for (const key of ['a', 'b', 'b.x.c', 'x.y.c', 'z']) await broker.publish(text(key, key))
      await vi.waitFor(() => expect(sink.texts.at(-1)).toBe('z'))
      await vi.waitFor(() => expect(sink.texts.sort()).toEqual(['a', 'b', 'b.x.c', 'x.y.c', 'z']))
      await broker.unbind('#')
      sink.isListening = false
    }
  })

  it('refuses one that is no log', async () => {
    const [memory, copy] = [ownNamespace(), ownNamespace()]
    const base = { subjects: [`${memory}.>`], num_replicas: 1 }
    await askJetStream(service, `STREAM.CREATE.${memory}-log`, { ...base, name: `${memory}-log`, storage: 'memory' })
    await expect(startNode({ broker: service.url, brokerNamespace: memory })).rejects.toMatchObject({
      code: 'E_BROKER_REFUSED',
      message: expect.stringContaining(`nats stream rm ${memory}-log`),
    })
    const queue = { name: `${copy}-log`, storage: 'file', retention: 'workqueue', num_replicas: 1 }
    await askJetStream(service, `STREAM.CREATE.${copy}-log`, { ...queue, subjects: [`${copy}.>`] })
    await expect(startNode({ broker: service.url, brokerNamespace: copy })).rejects.toMatchObject({
      code: 'E_BROKER_REFUSED',
      message: expect.stringContaining('workqueue'),
    })
  })

  it('refuses to start when another stream has its subjects', async () => {
    const brokerNamespace = freshNamespace()
    const name = `other-${brokerNamespace}`
    const stream = { name, subjects: [`${brokerNamespace}.a.>`], storage: 'memory', num_replicas: 1 }
    await askJetStream(service, `STREAM.CREATE.${name}`, stream)
    onTestFinished(async () => void (await askJetStream(service, `STREAM.DELETE.${name}`)))
    await expect(startNode({ broker: service.url, brokerNamespace })).rejects.toMatchObject({
      code: 'E_BROKER_REFUSED',
      message: expect.stringContaining('overlap'),
    })
  })

  it('says what to do where JetStream is not enabled', async () => {
    const server = await privateNats('server_name: plain')
    await expect(startNode({ broker: server.url })).rejects.toMatchObject({
      code: 'E_BROKER_REFUSED',
      message: expect.stringContaining('jetstream {}'),
    })
    await startNode({ broker: server.url, ...historyOf() })
  })

  it('says what its user must be allowed, and needs no more', async () => {
    const user = (name: string, publish: string[], subscribe: string[]) =>
      `{ user: ${name}, password: x, permissions { publish: ${JSON.stringify(publish)}, subscribe: ${JSON.stringify(subscribe)} } }`
    const users = [
      user('plain', ['webmq.>'], ['webmq.>']),
      user('deaf', ['webmq.>', '$JS.API.>', '$JS.FC.>'], ['webmq.>']),
      user('able', ['webmq.>', '$JS.API.>', '$JS.FC.>'], ['webmq.>', '_INBOX.>']),
    ]
    const server = await privateNats(
      `jetstream { store_dir: "${await ownFolder()}" }\nauthorization { users: [ ${users.join(', ')} ] }`,
    )
    const as = (name: string) => ({ broker: server.url.replace('//', `//${name}:x@`), brokerNamespace: 'webmq' })
    for (const name of ['plain', 'deaf']) {
      await expect(startNode(as(name))).rejects.toMatchObject({
        code: 'E_BROKER_REFUSED',
        message: expect.stringContaining('$JS.API.>'),
      })
    }
    const { broker, sink } = await startNode(as('able'))
    await broker.bind('#')
    await broker.publish(text('a', 'one'))
    await vi.waitFor(() => expect(sink.texts).toEqual(['one']))
  })

  it('holds its bounds under a flood', async () => {
    const brokerNamespace = ownNamespace()
    const bounds = { historyMaxMessages: 2_000, historyMaxBytes: 300_000 }
    const { broker } = await startNode({ broker: service.url, brokerNamespace, ...historyOf('#=1000'), ...bounds })
    const payload = 'x'.repeat(500)
    const largest = { messages: 0, bytes: 0 }
    for (let round = 0; round < 40; round++) {
      await Promise.all(Array.from({ length: 500 }, (_, index) => broker.publish(text(`key.${index % 5}`, payload))))
      const { state } = await streamOf(brokerNamespace)
      largest.messages = Math.max(largest.messages, state?.messages ?? 0)
      largest.bytes = Math.max(largest.bytes, state?.bytes ?? 0)
    }
    process.stdout.write(`log of nats, bounds of 2000 messages and 300000 bytes: ${JSON.stringify(largest)}\n`)
    expect(largest.bytes).toBeGreaterThan(200_000)
    expect(largest.bytes).toBeLessThanOrEqual(bounds.historyMaxBytes)
    expect(largest.messages).toBeLessThanOrEqual(bounds.historyMaxMessages)
  })

  // The stream answers one message of a turn: the others are known by what the log brings.
  it('tells which messages of a turn the stream has not taken', async () => {
    const brokerNamespace = ownNamespace()
    const { broker } = await startNode({ broker: service.url, brokerNamespace, ...historyOf('#=1000') })
    const { config } = await streamOf(brokerNamespace)
    await askJetStream(service, `STREAM.UPDATE.${brokerNamespace}-log`, { ...config, max_msg_size: 1_000 })
    const large = 'x'.repeat(2_000)
    const outcomesOf = async (payloads: readonly string[]) => {
      const published = await Promise.allSettled(payloads.map(async (payload) => broker.publish(text('a', payload))))
      return published.map((one) =>
        one.status === 'fulfilled' ? 'accepted' : String(one.reason.message).replace(/^.*it refused the message: /, ''),
      )
    }
    const inside = await outcomesOf(['one', large, 'two'])
    const atTheEnd = await outcomesOf(['three', large, 'four', large])
    expect(inside).toEqual(['accepted', 'JetStream has not stored it', 'accepted'])
    const sizeError = expect.stringMatching(/^message size exceeds/)
    expect(atTheEnd).toEqual([
      'accepted',
      expect.stringMatching(/^JetStream has not|^message size/),
      'accepted',
      sizeError,
    ])
    expect(await logged(broker)).toEqual(['one', 'two', 'three', 'four'])
  })

  it('lets go of what is older than the rules say', async () => {
    const brokerNamespace = ownNamespace()
    const { broker } = await startNode({ broker: service.url, brokerNamespace, ...historyOf('#=1000,1s') })
    await broker.publish(text('a', 'one'))
    expect((await streamOf(brokerNamespace)).state).toMatchObject({ last_seq: 1 })
    await vi.waitFor(async () => expect((await streamOf(brokerNamespace)).state).toMatchObject({ messages: 0 }))
    // Nothing that it has seen was lost.
    expect((await broker.read({ rewindMs: 500 }, ['#'])).gap).toBeUndefined()
  })
})

describe('log of nats, with others', () => {
  it('has what other programs publish, as text if it is JSON', async () => {
    const brokerNamespace = ownNamespace()
    const { broker, sink } = await startNode({ broker: service.url, brokerNamespace, ...historyOf('chat.#=10') })
    await broker.bind('chat.*')
    const client = await plainClient(service)
    const withHeaders = headers()
    withHeaders.set('X-Trace', '1')
    client.publish(`${brokerNamespace}.chat.1`, '{"x":1}', { headers: withHeaders })
    client.publish(`${brokerNamespace}.chat.2`, 'no JSON')
    await vi.waitFor(() => expect(sink.messages).toHaveLength(2))
    expect(sink.messages).toEqual([
      { key: 'chat.1', text: '{"x":1}', isBinary: false },
      { key: 'chat.2', text: 'no JSON', isBinary: true },
    ])
    expect(await logged(broker)).toEqual(['{"x":1}', 'no JSON'])
    expect(await broker.position()).toEqual(sink.positions[1])
  })

  it('delivers once what a pattern brings live and from the log', async () => {
    const brokerNamespace = ownNamespace()
    const { broker, sink } = await startNode({ broker: service.url, brokerNamespace, ...historyOf('chat.#.x=10') })
    for (const pattern of ['#', 'chat.*', 'chat.#.x', '*.x']) await broker.bind(pattern)
    const client = await plainClient(service)
    const keys = ['chat.x', 'chat.y', 'other.x', 'chat.a.b.x', 'chat.a.b.y']
    for (const key of keys) await broker.publish(text(key, key))
    for (const key of keys) client.publish(`${brokerNamespace}.${key}`, `"${key}"`)
    await vi.waitFor(() => expect(sink.messages).toHaveLength(2 * keys.length))
    expect(sink.texts.sort()).toEqual([...keys, ...keys.map((key) => `"${key}"`)].sort())
    expect(await logged(broker, 'chat.#.x')).toEqual(['chat.x', 'chat.a.b.x', '"chat.x"', '"chat.a.b.x"'])
    for (const [index, { key }] of sink.messages.entries())
      expect(sink.positions[index] !== undefined, key).toBe(/^chat\..*x$/.test(key))
  })

  it('brings keys of the server to who listens to everything, though they are not logged', async () => {
    const brokerNamespace = ownNamespace()
    const all = await startNode({ broker: service.url, brokerNamespace })
    const both = await startNode({ broker: service.url, brokerNamespace })
    await all.broker.bind('#')
    for (const pattern of ['#', '$own.*']) await both.broker.bind(pattern)
    await all.broker.publish(text('$own.a', 'one'))
    await all.broker.publish(text('b', 'two'))
    for (const { broker, sink } of [all, both]) {
      await vi.waitFor(() => expect([...sink.texts].sort()).toEqual(['one', 'two']))
      expect(await logged(broker)).toEqual(['two'])
    }
  })

  it('hears nodes that log nothing, and is heard by them, while rules are rolled out', async () => {
    const brokerNamespace = ownNamespace()
    const older = await startNode({ broker: service.url, brokerNamespace, ...historyOf() })
    const newer = await startNode({ broker: service.url, brokerNamespace })
    for (const { broker } of [older, newer]) await broker.bind('a.#')
    await older.broker.publish(text('a.1', 'one'))
    await older.broker.publishBatch?.(['two', 'three'].map((body) => text('a.2', body)))
    await newer.broker.publish(text('a.3', 'four', { messageId: messageIdOf('id') }))
    for (const { sink } of [older, newer])
      await vi.waitFor(() => expect(sink.texts).toEqual(['one', 'two', 'three', 'four']))
    expect(older.sink.messages).toEqual(newer.sink.messages)
    // Symptom: who came back was told nothing, and missed what a node without history had bundled. Cause: it has one place.
    const { position: since } = await newer.broker.publish(text('a.3', 'here'))
    await older.broker.publishBatch?.(['five', 'six'].map((body) => text('a.2', body)))
    await newer.broker.publish(text('a.3', 'seven'))
    expect(await newer.broker.read({ ...(since && { since }) }, ['a.#'])).toMatchObject({ gap: 'refused' })
  })
})

describe('log of nats, messages', () => {
  it('has a message id once over all nodes, and answers with its first place', async () => {
    const brokerNamespace = ownNamespace()
    const [a, b] = [
      await startNode({ broker: service.url, brokerNamespace }),
      await startNode({ broker: service.url, brokerNamespace }),
    ]
    const messageId = messageIdOf('id')
    const payload = 'x'.repeat(262_144)
    const first = await a.broker.publish(text('größe>.a%"', payload, { messageId }))
    const again = await b.broker.publish(text('größe>.a%"', payload, { messageId }))
    expect(first).toEqual({ position: again.position, isDuplicate: false })
    expect(again.isDuplicate).toBe(true)
    expect((await streamOf(brokerNamespace)).state?.last_seq).toBe(first.position?.offset)
    expect(await logged(b.broker)).toEqual([payload])
  })

  /*
   * Symptom: a duplicate was answered with the position of another message (seed 1040586).
   * Cause: the stream had been deleted, which the node had not seen yet, and the next one knew the id.
   */
  it('answers a duplicate with the place in the log that has it, also when that is another one than it follows', async () => {
    const options = { broker: service.url, brokerNamespace: ownNamespace(), brokerHeartbeatMs: 60_000 }
    const [a, b] = [await startNode(options), await startNode(options)]
    const before = await a.broker.publish(text('a', 'one'))
    await vi.waitFor(async () => expect(await logged(b.broker)).toEqual(['one']))
    await askJetStream(service, `STREAM.DELETE.${options.brokerNamespace}-log`)
    const messageId = messageIdOf('id')
    const first = await a.broker.publish(text('a', 'two', { messageId }))
    expect(first.position?.epoch).not.toBe(before.position?.epoch)
    expect(await b.broker.publish(text('a', 'two', { messageId }))).toEqual({ ...first, isDuplicate: true })
    expect(b.sink.gaps).toEqual(['epoch-changed'])
  })

  /*
   * Symptom: after a restart of NATS, an id was stored a second time within its window.
   * Cause: JetStream rebuilds its table of ids from the stream, and the first message had left the stream.
   */
  it('has a message id once over a restart of NATS, when the log no longer has its message', async () => {
    const server = await privateNats(`jetstream { store_dir: "${await ownFolder()}" }`)
    const options = { broker: server.url, brokerNamespace: 'webmq', historyMaxMessages: 50 }
    const [a, b] = [await startNode(options), await startNode(options)]
    const once = text('a', 'once', { messageId: messageIdOf('id') })
    const { position } = await a.broker.publish(once)
    const later = Array.from({ length: 200 }, (_, number) => String(number))
    for (const body of later) await a.broker.publish(text('a', body))
    await server.kill()
    // The node has the id in its copy of the log.
    expect(await b.broker.publish(once)).toEqual({ position, isDuplicate: true })
    await server.restart()
    const fresh = await startNode(options)
    const newest = await logged(fresh.broker)
    // Some of the 50 are what nodes say when they connect.
    expect(newest.length).toBeGreaterThan(40)
    expect(newest).toEqual(later.slice(-newest.length))
    // This node does not have it, and JetStream has.
    const known = { ...position, fingerprint: 0 }
    expect(await fresh.broker.publish(once)).toEqual({ position: known, isDuplicate: true })
    expect(await logged(fresh.broker)).toEqual(newest)
  })

  it('is followed by a node that starts late, however long it is', async () => {
    const brokerNamespace = ownNamespace()
    const history = { ...historyOf('#=100000'), historyMaxMessages: 50_000, historyMaxBytes: 64 * 1_048_576 }
    const first = await startNode({ broker: service.url, brokerNamespace, ...history })
    const texts = Array.from({ length: 30_000 }, (_, index) => `${index} ${'x'.repeat(300)}`)
    for (let from = 0; from < texts.length; from += 1_000)
      await Promise.all(texts.slice(from, from + 1_000).map((body) => first.broker.publish(text('a', body))))
    const later = await startNode({ broker: service.url, brokerNamespace, ...history })
    expect(await later.broker.position()).toEqual(await first.broker.position())
    expect(await logged(later.broker)).toEqual(texts)
  })

  // A node on a slow network was up with the beginning of the log. It took a pause of the flow control for the end.
  it('is complete when a node is up, however slow its network is', async () => {
    const brokerNamespace = ownNamespace()
    const history = { ...historyOf('#=100000'), historyMaxMessages: 50_000, historyMaxBytes: 64 * 1_048_576 }
    const first = await startNode({ broker: service.url, brokerNamespace, ...history })
    const texts = Array.from({ length: 8_000 }, (_, index) => `${index} ${'x'.repeat(1_000)}`)
    for (let from = 0; from < texts.length; from += 1_000)
      await Promise.all(texts.slice(from, from + 1_000).map((body) => first.broker.publish(text('a', body))))
    const proxy = await startFaultProxy(service)
    onTestFinished(() => proxy.stop())
    // A round trip of two heartbeats of the consumer and more.
    await proxy.latency(250)
    const options = { broker: proxy.url, brokerNamespace, brokerStartTimeoutMs: 30_000, ...history }
    const later = await startNode({ ...options, brokerHeartbeatMs: 400 })
    expect(await later.broker.position()).toEqual(await first.broker.position())
  })

  it('leaves no consumer behind', async () => {
    const brokerNamespace = ownNamespace()
    const { broker } = await startNode({ broker: service.url, brokerNamespace })
    const consumers = async () => (await askJetStream(service, `CONSUMER.NAMES.${brokerNamespace}-log`)).consumers
    expect(await consumers()).toHaveLength(1)
    await broker.stop()
    await vi.waitFor(async () => expect((await consumers()) ?? []).toEqual([]), { timeout: 4_000 })
  })

  it('is read around messages that an operator has deleted', async () => {
    const brokerNamespace = ownNamespace()
    const first = await startNode({ broker: service.url, brokerNamespace })
    const texts = Array.from({ length: 30 }, (_, index) => String(index))
    const offsets: number[] = []
    for (const body of texts) offsets.push((await first.broker.publish(text('a', body))).position?.offset ?? 0)
    const kept = texts.filter((_, index) => index % 3 !== 1)
    for (const [index, seq] of offsets.entries())
      if (index % 3 === 1) await askJetStream(service, `STREAM.MSG.DELETE.${brokerNamespace}-log`, { seq })
    const later = await startNode({ broker: service.url, brokerNamespace })
    expect(await logged(later.broker)).toEqual(kept)
    await first.broker.publish(text('a', 'end'))
    await vi.waitFor(async () => expect(await logged(later.broker)).toEqual([...kept, 'end']))
    expect(later.broker.stats().lostCount).toBe(0)
  })

  it('is caught up with after it was cut off, without a gap while the stream has it, and with one when not', async () => {
    const brokerNamespace = ownNamespace()
    const proxy = await startFaultProxy(service)
    onTestFinished(() => proxy.stop())
    const history = { ...historyOf('#=1000'), historyMaxMessages: 100, dedupeMaxIds: 100 }
    const cutOff = await startNode({ broker: proxy.url, brokerNamespace, ...history })
    const other = await startNode({ broker: service.url, brokerNamespace, ...history })
    await cutOff.broker.bind('#')
    const publish = async (from: number, to: number) => {
      for (let number = from; number < to; number++) await other.broker.publish(text('a', String(number)))
    }
    await publish(0, 10)
    await proxy.cut()
    await vi.waitFor(() => expect(cutOff.sink.statuses.at(-1)).toBe('down'))
    await publish(10, 60)
    await proxy.heal()
    await vi.waitFor(() => expect(cutOff.sink.texts).toHaveLength(60))
    expect(cutOff.sink.gaps).toEqual([])
    await proxy.cut()
    await vi.waitFor(() => expect(cutOff.sink.statuses.at(-1)).toBe('down'))
    await publish(60, 300)
    await proxy.heal()
    await vi.waitFor(() => expect(cutOff.sink.texts.at(-1)).toBe('299'))
    expect(cutOff.sink.gaps).toEqual(['history-expired'])
    const numbers = cutOff.sink.texts.map(Number)
    const [next = 0] = numbers.slice(60)
    // The stream has room for 100; some of that is taken by what nodes say when they connect.
    expect(next).toBeGreaterThanOrEqual(200)
    expect(next).toBeLessThan(210)
    const isHeld = (number: number) => number < 60 || number >= next
    expect(numbers).toEqual(Array.from({ length: 300 }, (_, number) => number).filter(isHeld))
  })
})

describe('log of nats, a node that stands still', () => {
  it('is cut off, and then has everything that the stream has kept', async () => {
    const store = await ownFolder()
    const server = await privateNats(`write_deadline: "500ms"\njetstream { store_dir: "${store}" }`)
    const history = { ...historyOf('#=1000'), historyMaxBytes: 256 * 1_048_576 }
    const { broker, sink } = await startNode({ broker: server.url, brokerNamespace: 'webmq', ...history })
    await broker.bind('#')
    const isDone = new Int32Array(new SharedArrayBuffer(4))
    const flood = new Worker(FLOOD, { eval: true, workerData: { port: Number(new URL(server.url).port), isDone } })
    onTestFinished(async () => void (await flood.terminate()))
    // This thread, and with it the node, does nothing meanwhile.
    Atomics.wait(isDone, 0, 0, 15_000)
    await vi.waitFor(() => expect(sink.messages).toHaveLength(FLOOD_COUNT))
    expect(sink.texts.map(Number.parseFloat)).toEqual(Array.from({ length: FLOOD_COUNT }, (_, number) => number))
    expect(sink.gaps).toEqual([])
    await broker.publish(text('end', 'end'))
    await vi.waitFor(() => expect(sink.texts.at(-1)).toBe('end'))
  })
})

describe('log of nats, a server that comes back with less', () => {
  it.each([
    ['has lost the end of its log', 0],
    ['has lost it, and has gone on beyond the place where nodes are', 9],
  ])('tells of another epoch when it %s', async (_, moreCount) => {
    const folder = await ownFolder()
    const [store, backup] = [path.join(folder, 'store'), path.join(folder, 'backup')]
    const server = await privateNats(`jetstream { store_dir: "${store}" }`)
    const proxies = [await startFaultProxy(server), await startFaultProxy(server)]
    onTestFinished(async () => void (await Promise.all(proxies.map((proxy) => proxy.stop()))))
    const nodes: Awaited<ReturnType<typeof startNode>>[] = []
    for (const { url } of proxies) nodes.push(await startNode({ broker: url, brokerNamespace: 'webmq' }))
    const [one, two] = nodes
    if (one === undefined || two === undefined) throw new Error('no nodes')
    for (const { broker } of nodes) await broker.bind('#')
    for (const body of ['1', '2', '3']) await one.broker.publish(text('a', body))
    const isUp = () => vi.waitFor(() => expect(nodes.map(({ sink }) => sink.statuses.at(-1))).toEqual(['up', 'up']))
    await server.kill()
    await cp(store, backup, { recursive: true })
    await server.restart()
    await isUp()
    for (const body of ['4', '5', '6']) await one.broker.publish(text('a', body))
    await vi.waitFor(() => expect(two.sink.texts).toHaveLength(6))
    const before = await one.broker.position()

    await Promise.all(proxies.map((proxy) => proxy.cut()))
    await server.kill()
    await rm(store, { recursive: true })
    await cp(backup, store, { recursive: true })
    await server.restart()
    const client = await plainClient(server)
    for (let count = 0; count < moreCount; count++) await client.request('webmq.a', `"more ${count}"`)
    await Promise.all(proxies.map((proxy) => proxy.heal()))
    await isUp()
    await vi.waitFor(async () => {
      const epochs = await Promise.all(nodes.map(async ({ broker }) => (await broker.position())?.epoch))
      expect(epochs).toEqual([expect.stringMatching(`^${before?.epoch}\\.1\\.`), epochs[0]])
    })
    await isUp()
    await one.broker.publish(text('a', 'end'))
    for (const { broker, sink } of nodes) {
      await vi.waitFor(() => expect(sink.texts.at(-1)).toBe('end'))
      expect(sink.gaps).toEqual(['epoch-changed'])
      const more = Array.from({ length: moreCount }, (_, count) => `"more ${count}"`)
      expect(await logged(broker)).toEqual(['1', '2', '3', ...more, 'end'])
      if (before !== undefined)
        expect(await broker.read({ since: before }, ['#'])).toMatchObject({ gap: 'epoch-changed' })
    }
  })

  // Symptom: a client resumed as `recovered`, though messages were lost that others had seen, and their positions were
  // given to other messages. Cause: only a node that had seen them could find out, and none was left.
  it('tells every client of another epoch when no node is left that has seen its log', async () => {
    const folder = await ownFolder()
    const [store, backup] = [path.join(folder, 'store'), path.join(folder, 'backup')]
    const server = await privateNats(`jetstream { store_dir: "${store}" }`)
    const options = { broker: server.url, brokerNamespace: 'webmq' }
    const before = await startNode(options)
    const { position: kept = NONE } = await before.broker.publish(text('a', '1'))
    await server.kill()
    await cp(store, backup, { recursive: true })
    await server.restart()
    await vi.waitFor(() => expect(before.sink.statuses.at(-1)).toBe('up'))
    const { position: lost = NONE } = await before.broker.publish(text('a', '2'))
    expect(lost.epoch).toBe(kept.epoch)
    await before.broker.stop()
    const epochs = new Set([kept.epoch])
    for (let round = 0; round < 2; round++) {
      await server.kill()
      await rm(store, { recursive: true })
      await cp(backup, store, { recursive: true })
      await server.restart()
      const after = await startNode(options)
      const { position = NONE } = await after.broker.publish(text('a', '3'))
      for (const since of [kept, lost])
        expect(await after.broker.read({ since }, ['#'])).toMatchObject({ gap: 'epoch-changed' })
      expect(await logged(after.broker)).toEqual(['1', '3'])
      epochs.add(position.epoch)
      await after.broker.stop()
    }
    expect(epochs.size).toBe(3)
  })

  it('is whole when its nodes stop and start, and it does not', async () => {
    const server = await privateNats(`jetstream { store_dir: "${await ownFolder()}" }`)
    const options = { broker: server.url, brokerNamespace: 'webmq' }
    const before = await startNode(options)
    const { position: since = NONE } = await before.broker.publish(text('a', '1'))
    await before.broker.stop()
    const after = await startNode(options)
    const client = await plainClient(server)
    await client.request('webmq.a', '"of another program, without headers"')
    await vi.waitFor(async () =>
      expect(await after.broker.read({ since }, ['#'])).toMatchObject({ messages: [{ key: 'a' }] }),
    )
    expect(await after.broker.read({ since }, ['#'])).not.toHaveProperty('gap')
  })
})

const NONE = { epoch: 'none', offset: 0, fingerprint: 0 }
