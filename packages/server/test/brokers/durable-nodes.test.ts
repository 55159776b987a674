import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, it } from 'vitest'
import { freePort, sharedService } from 'webmq-services'
import { createServer } from '../../src/create-server.js'
import type { WebMQServer } from '../../src/doors/in-process/webmq-server.js'
import { KINDS } from './kinds.js'

const NODES = 3
const WRITERS = 4
const TYPE = { 'content-type': 'application/octet-stream' }
const REMOTE = ['redis', 'nats', 'rabbitmq'] as const
const servers: WebMQServer[] = []
let namespaceCount = 0

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop({ drainMs: 0 })))
})

/** The address of a stream at the next node, as a balancer without stickiness picks it. */
async function startNodes(broker: string, listens?: readonly string[]): Promise<(key?: string) => string> {
  const brokerNamespace = `nodes-${process.pid}-${++namespaceCount}`
  const urls: string[] = []
  for (let node = 0; node < NODES; node++) {
    const options = { port: 0, host: '127.0.0.1', logLevel: 'fatal', history: ['#=100000'] } as const
    const listen = listens?.[node]
    const mesh = listen === undefined ? undefined : { mesh: { listen } }
    const server = createServer({ ...options, broker, brokerNamespace, ...mesh })
    servers.push(server)
    urls.push(`http://127.0.0.1:${(await server.start()).port}/streams`)
  }
  let asked = 0
  return (key = 'log') => `${urls[asked++ % NODES]}/${key}`
}

/** As clients do: 503 is no answer, and tells when to come again. */
async function answered(ask: () => Promise<Response>): Promise<Response> {
  for (;;) {
    const answer = await ask().catch(() => undefined)
    if (answer !== undefined && answer.status !== 503 && answer.status !== 504) return answer
    if (answer !== undefined) expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    await sleep(20)
  }
}

const append = (next: () => string, id: string, seq: number, epoch = 0) =>
  answered(() =>
    fetch(next(), {
      method: 'POST',
      body: `${id}${epoch}.${seq};`,
      headers: { ...TYPE, 'producer-id': id, 'producer-epoch': `${epoch}`, 'producer-seq': `${seq}` },
    }),
  )

/** Appends one after the other, each to the next node. @returns What was refused. */
async function write(next: () => string, id: string, isOver: (seq: number) => boolean): Promise<string[]> {
  const refused: string[] = []
  for (let seq = 0; !isOver(seq); seq++) {
    const answer = await append(next, id, seq)
    // 204: the stream had it, from an attempt without an answer.
    if (answer.status !== 204 && answer.status !== 200)
      refused.push(`${answer.status} at ${seq}: ${await answer.text()}`)
  }
  return refused
}

/** Every number of each writer is there, once and in order. */
async function expectAll(next: () => string, lengths: readonly number[]): Promise<void> {
  const text = await (await answered(() => fetch(next()))).text()
  lengths.forEach((length, writer) => {
    const given = Array.from(text.matchAll(new RegExp(`w${writer}0\\.(\\d+);`, 'g')), ([, seq]) => Number(seq))
    expect(given).toEqual(Array.from({ length }, (_, seq) => seq))
  })
}

describe.each(REMOTE)('Durable Streams at three nodes with %s, each request at the next', (kind) => {
  it('take every append of a producer whose last one another node has acknowledged', async () => {
    const next = await startNodes((await sharedService(kind)).url)
    expect((await fetch(next(), { method: 'PUT', headers: TYPE })).status).toBe(201)
    const length = 60
    const writers = Array.from({ length: WRITERS }, (_, writer) => write(next, `w${writer}`, (seq) => seq === length))
    expect((await Promise.all(writers)).flat()).toEqual([])
    await expectAll(next, new Array(WRITERS).fill(length))
  })

  it('are there, closed and gone everywhere as soon as one node has answered', async () => {
    const next = await startNodes((await sharedService(kind)).url)
    const ask = (method: string, headers: Record<string, string> = {}, body?: string) =>
      answered(() => fetch(next(), { method, headers, ...(body === undefined ? {} : { body }) }))
    for (let round = 0; round < 20; round++) {
      const none = await ask('GET')
      expect([none.status, await none.json()]).toMatchObject([
        404,
        { code: 'E_STREAM_NOT_FOUND', message: 'there is no stream at this key' },
      ])
      expect((await ask('PUT', TYPE)).status).toBe(201)
      expect((await ask('HEAD')).status).toBe(200)
      // A producer that begins anew with another epoch, and one that another node has fenced off.
      expect((await append(next, 'p', 0, 1)).status).toBe(200)
      expect((await append(next, 'p', 1, 1)).status).toBe(200)
      expect((await append(next, 'p', 0, 0)).status).toBe(403)
      expect((await append(next, 'p', 2, 1)).status).toBe(200)
      expect(await (await ask('GET')).text()).toBe('p1.0;p1.1;p1.2;')
      expect((await ask('POST', { 'stream-closed': 'true' })).status).toBe(204)
      expect((await ask('HEAD')).headers.get('stream-closed')).toBe('true')
      expect((await ask('POST', TYPE, 'late')).status).toBe(409)
      expect((await ask('DELETE')).status).toBe(204)
      expect((await ask('DELETE')).status).toBe(404)
      // What a node knows of a stream that is gone is no answer for the next one, of another type, and with the same producer.
      expect((await ask('PUT', { 'content-type': 'text/plain' })).status).toBe(201)
      const text = { 'content-type': 'text/plain', 'producer-id': 'p', 'producer-epoch': '0', 'producer-seq': '0' }
      expect((await ask('POST', text, 'again')).status).toBe(200)
      expect((await ask('POST', text, 'again')).status).toBe(204)
      expect(await (await ask('GET')).text()).toBe('again')
      expect((await ask('DELETE')).status).toBe(204)
    }
  })

  it('go on so when the broker is restarted, and refuse nothing that was acknowledged', async () => {
    const service = await KINDS[kind].start({})
    try {
      const next = await startNodes(service.url)
      expect((await answered(() => fetch(next(), { method: 'PUT', headers: TYPE }))).status).toBe(201)
      if (kind === 'rabbitmq') await sleep(1_000)
      const ends: number[] = new Array(WRITERS).fill(0)
      let isOver = false
      const writers = ends.map((_, writer) =>
        write(next, `w${writer}`, (seq) => {
          ends[writer] = seq
          return isOver && seq >= 10
        }),
      )
      await sleep(500)
      await service.kill()
      await service.restart()
      await expect.poll(() => servers.every((server) => server.stats().broker.status === 'up')).toBe(true)
      await sleep(1_500)
      isOver = true
      expect((await Promise.all(writers)).flat()).toEqual([])
      await expectAll(next, ends)
    } finally {
      await Promise.all(servers.splice(0).map((server) => server.stop({ drainMs: 0 })))
      await service.stop()
    }
  })

  it('give their keys to the next writer as soon as a stream has ended at another node', async () => {
    const next = await startNodes((await sharedService(kind)).url)
    for (let round = 0; round < 30; round++) {
      const url = next('turn').replace(/streams\/turn$/, 'api/streams?key=turn')
      const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'text/plain' }, body: `${round}` })
      expect([answer.status, await answer.json()]).toMatchObject([200, { status: 'end' }])
    }
  })
})

it('streams with a time to live leave nothing at their nodes and at Redis when it is over', async () => {
  const { url } = await sharedService('redis')
  const next = await startNodes(url)
  const redis = new Redis(url)
  try {
    const channels = async () =>
      (await redis.pubsub('CHANNELS', `nodes-${process.pid}-${namespaceCount}*`)).map(String).toSorted()
    const before = await channels()
    for (let number = 0; number < 200; number++) {
      const headers = { ...TYPE, 'stream-ttl': '2' }
      expect((await fetch(next(`ttl.${number}`), { method: 'PUT', headers })).status).toBe(201)
    }
    expect((await channels()).length).toBeGreaterThan(before.length)
    await expect.poll(() => servers.map((server) => server.stats().streams.activeCount)).toEqual([0, 0, 0])
    await expect.poll(channels).toEqual(before)
  } finally {
    redis.disconnect()
  }
})

it('Durable Streams are refused as a whole by nodes of a mesh: each has a log of its own', async () => {
  const places = await Promise.all(Array.from({ length: NODES }, async () => `127.0.0.1:${await freePort()}`))
  const next = await startNodes(`mesh://${places.join()}`, places)
  for (const method of ['PUT', 'POST', 'GET', 'DELETE']) {
    const answer = await fetch(next(), { method, headers: TYPE, ...(method === 'GET' ? {} : { body: 'a' }) })
    expect([answer.status, (await answer.json()).code]).toEqual([501, 'E_UNSUPPORTED'])
  }
})
