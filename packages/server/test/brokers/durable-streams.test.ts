import { afterEach, describe, expect, it, vi } from 'vitest'
import { type ServiceKind, sharedService } from 'webmq-services'
import { inTurn } from '../../../../test/in-turn.js'
import { createServer } from '../../src/create-server.js'
import type { WebMQServer } from '../../src/doors/in-process/webmq-server.js'

const servers: WebMQServer[] = []
let namespaceCount = 0

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop({ drainMs: 0 })))
})

/** Addresses of one stream at two nodes; of the memory broker, one. */
async function startNodes(kind: ServiceKind | 'memory'): Promise<[string, string]> {
  const brokerNamespace = `durable-${process.pid}-${++namespaceCount}`
  const broker = kind === 'memory' ? {} : { broker: (await sharedService(kind)).url, brokerNamespace }
  const start = async () => {
    const server = createServer({ port: 0, host: '127.0.0.1', logLevel: 'fatal', history: ['#=10000'], ...broker })
    servers.push(server)
    return `http://127.0.0.1:${(await server.start()).port}/streams/log`
  }
  const here = await start()
  return [here, kind === 'memory' ? here : await start()]
}

const TYPE = { 'content-type': 'application/octet-stream' }

interface Producer {
  readonly id: string
  readonly seq: number
}

function append(url: string, body: string, producer?: Producer, headers = {}): Promise<Response> {
  const { id, seq } = producer ?? {}
  const own = producer && { 'producer-id': `${id}`, 'producer-epoch': '0', 'producer-seq': `${seq}` }
  return fetch(url, { method: 'POST', body, headers: { ...TYPE, ...own, ...headers } })
}

/** As clients do: an error that passes is no answer. */
async function appended(url: string, body: string, producer?: Producer): Promise<number> {
  for (;;) {
    const { status } = await append(url, body, producer)
    if (status !== 503) return status
  }
}

const whole = async (url: string) => await (await fetch(url)).text()

describe.each(inTurn(['memory', 'redis', 'nats', 'rabbitmq'] as const))('Durable Streams with %s', (kind) => {
  it('are there on the other node as soon as one has answered', async () => {
    const [here, there] = await startNodes(kind)
    for (let round = 0; round < 10; round++) {
      const [one, other] = round % 2 === 0 ? [here, there] : [there, here]
      expect((await fetch(one, { method: 'PUT', headers: TYPE, body: `${round}` })).status).toBe(201)
      // It waits half a second for its copy of the log; a busy machine may take longer.
      const answer = await vi.waitFor(async () => {
        const answer = await append(other, 'b')
        expect(answer.status).toBe(204)
        return answer
      })
      const offset = answer.headers.get('stream-next-offset')
      expect((await append(one, 'c')).status).toBe(204)
      expect(await whole(`${one}?offset=${offset}`)).toBe('c')
      expect(await whole(`${other}?offset=${offset}`)).toMatch(/^c?$/)
      expect((await fetch(other, { method: 'DELETE' })).status).toBe(204)
    }
  })

  it('have each append of a producer once, though every one comes to both nodes', async () => {
    const [here, there] = await startNodes(kind)
    await fetch(here, { method: 'PUT', headers: TYPE })
    const ids = ['a', 'b', 'c']
    const produce = async (id: string) => {
      for (let seq = 0; seq < 15; seq++) {
        const answers = await Promise.all([here, there].map((url) => appended(url, `${id}${seq};`, { id, seq })))
        expect(answers.toSorted()).toEqual([200, 204])
      }
    }
    await Promise.all(ids.map(produce))
    const text = await whole(here)
    const expected = Array.from({ length: 15 }, (_, seq) => seq)
    for (const id of ids)
      expect(Array.from(text.matchAll(new RegExp(`${id}(\\d+);`, 'g')), ([, seq]) => Number(seq))).toEqual(expected)
    const { headers } = await append(there, '', undefined, { 'stream-closed': 'true' })
    // The other node has the same, byte for byte: the offset knows what is before it.
    expect((await fetch(`${here}?offset=${headers.get('stream-next-offset')}`)).headers.get('stream-closed')).toBe(
      'true',
    )
  })

  it('are closed for everybody at one place, and read live from the other node', async () => {
    const [here, there] = await startNodes(kind)
    await fetch(here, { method: 'PUT', headers: TYPE })
    const read = (await fetch(`${there}?offset=-1&live=sse`)).text()
    const taken: string[] = []
    const writers = [here, there].map(async (url, index) => {
      for (let number = 0; ; number++) {
        const body = `${index}.${number};`
        const status = await appended(url, body)
        if (status === 409) return
        expect(status).toBe(204)
        taken.push(body)
      }
    })
    await expect.poll(() => taken.length).toBeGreaterThan(20)
    await append(there, 'end', { id: 'closer', seq: 0 }, { 'stream-closed': 'true' })
    await Promise.all(writers)
    const text = await whole(here)
    expect(text.split(';').slice(0, -1).toSorted()).toEqual(taken.map((body) => body.slice(0, -1)).toSorted())
    expect(text).toMatch(/;end$/)
    const parts = Array.from((await read).matchAll(/event: data\ndata:(.*)/g), ([, data = '']) =>
      Buffer.from(data, 'base64').toString(),
    )
    expect(parts.join('')).toBe(text)
    expect(await read).toContain('"streamClosed":true')
  })

  // The embedded broker has one node.
  const ofNodes = kind === 'memory' ? () => undefined : it
  ofNodes('have each append once when a node stops and its writers go on with another', async () => {
    const [here, there] = await startNodes(kind)
    await fetch(here, { method: 'PUT', headers: TYPE })
    let count = 0
    const produce = async (id: string) => {
      let url = here
      for (let seq = 0; seq < 30; ) {
        // It may or may not be in the log when there is no answer.
        const answer = await append(url, `${id}${seq};`, { id, seq }).catch(() => undefined)
        if (answer?.status === 200 || answer?.status === 204) [seq, count] = [seq + 1, count + 1]
        else url = there
      }
    }
    const producers = ['a', 'b', 'c'].map(produce)
    await expect.poll(() => count).toBeGreaterThan(10)
    await servers.shift()?.stop({ drainMs: 0 })
    await Promise.all(producers)
    const text = await whole(there)
    const expected = Array.from({ length: 30 }, (_, seq) => seq)
    for (const id of ['a', 'b', 'c'])
      expect(Array.from(text.matchAll(new RegExp(`${id}(\\d+);`, 'g')), ([, seq]) => Number(seq))).toEqual(expected)
  })
})
