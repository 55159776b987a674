import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type FaultProxy, type Service, startFaultProxy, startNats, startRabbitmq, startRedis } from 'webmq-services'
import { ProtocolClient } from '../packages/server/test/protocol-client.js'
import { type ServerProcess, startServerProcess } from './server-process.js'

// Symptom: publishes were answered `ok`, and no member got them, though all stayed connected to a healthy node. Cause: a node
// that did not answer in time counted as one without members.

const START = { redis: startRedis, nats: () => startNats({ hasJetStream: true }), rabbitmq: startRabbitmq } as const
const EVERY_MS = 20
const FAULT_MS = 3_500
/** Before the fault, and after it: others hear of the node again, and what waits is sent. */
const CALM_MS = 1_000
const SETTLE_MS = 6_000
const RETRY_MS = 150
const RETRYABLE = ['E_BROKER_UNAVAILABLE', 'E_TIMEOUT', 'E_RATE_LIMIT']

interface Scene {
  readonly broker: Service
  /** In front of the broker, for the node of the members alone. */
  readonly link: FaultProxy
  readonly members: ServerProcess
}

type Fault = (scene: Scene) => Promise<void>

const CUT: Fault = async ({ link }) => {
  await link.cut()
  await sleep(FAULT_MS)
  await link.heal()
}
const STOP: Fault = async ({ members }) => {
  members.process.kill('SIGSTOP')
  await sleep(FAULT_MS)
  members.process.kill('SIGCONT')
}
const restart =
  (awayMs: number): Fault =>
  async ({ broker }) => {
    await broker.kill()
    await sleep(awayMs)
    await broker.restart()
  }

async function connect({ url }: ServerProcess): Promise<ProtocolClient> {
  return await ProtocolClient.open(`${url.replace('http', 'ws')}/ws`)
}

async function play(kind: keyof typeof START, fault: Fault) {
  const broker = await START[kind]()
  onTestFinished(() => broker.stop())
  const link = await startFaultProxy(broker)
  onTestFinished(() => link.stop())
  const start = async (url: string) => {
    const flags = ['--broker', url, '--broker-heartbeat', '1s', '--history', 'jobs.logged=1000']
    const server = await startServerProcess(0, flags)
    onTestFinished(async () => void (await server.kill('SIGKILL')))
    return server
  }
  const [members, publishers] = [await start(link.url), await start(broker.url)]
  const taken = new Map<string, number>()
  const asked = new Map<string, number>()
  for (const count of [1, 2]) {
    const member = await connect(members)
    const joined = [
      await member.request((id) => ({ verb: 'listen', id, pattern: 'jobs.*', group: 'workers' })),
      await member.request((id) => ({ verb: 'listen', id, pattern: 'sum', group: 'sums', respond: true })),
    ]
    expect(joined, `member ${count}`).toMatchObject([{ verb: 'ok' }, { verb: 'ok' }])
    member.socket.on('message', () => {
      for (const { request, payload } of member.received('task').splice(0)) {
        const text = String(payload)
        const counts = request === undefined ? taken : asked
        counts.set(text, (counts.get(text) ?? 0) + 1)
        if (request !== undefined) member.send({ verb: 'reply', id: request, isError: false, payload: text })
      }
      member.messages.length = 0
    })
  }
  const publisher = await connect(publishers)
  const answers = new Map<string, (answer: { code?: string }) => void>()
  publisher.socket.on('message', () => {
    for (const message of publisher.messages.splice(0)) {
      if (message.verb === 'error') answers.get(message.id ?? '')?.({ code: message.code })
      else if (message.verb === 'ok' && !message.id.startsWith('q')) answers.get(message.id)?.({})
      else if (message.verb === 'reply')
        answers.get(message.id)?.(message.isError ? JSON.parse(`${message.payload}`) : {})
    }
  })
  let lastId = 0
  const answerTo = (letter: string, send: (id: string) => void) =>
    new Promise<string>((resolve) => {
      const id = `${letter}${++lastId}`
      answers.set(id, ({ code = 'ok' }) => resolve(code))
      send(id)
    })
  const codes = new Set<string>()
  const acknowledged: string[] = []
  const publish = async (number: number): Promise<void> => {
    const payload = `${number}`
    const key = number % 2 === 0 ? 'jobs.logged' : 'jobs.live'
    for (;;) {
      const code = await answerTo('p', (id) =>
        publisher.send({ verb: 'publish', id, key, messageId: `job-${number}`, echo: true, payload }),
      )
      if (code === 'ok') {
        acknowledged.push(payload)
        return
      }
      codes.add(code)
      expect(RETRYABLE).toContain(code)
      await sleep(RETRY_MS)
    }
  }
  const request = async (number: number): Promise<void> => {
    const code = await answerTo('q', (id) => publisher.send({ verb: 'request', id, key: 'sum', payload: `${number}` }))
    if (code !== 'ok') codes.add(code)
  }
  const all: Promise<void>[] = []
  const timer = setInterval(() => {
    all.push(publish(all.length))
    all.push(request(all.length))
  }, EVERY_MS)
  await sleep(CALM_MS)
  await fault({ broker, link, members })
  await sleep(SETTLE_MS)
  clearInterval(timer)
  await Promise.all(all)
  await vi.waitFor(() => expect(taken.size).toBeGreaterThanOrEqual(acknowledged.length))
  return { acknowledged, taken, asked, codes }
}

describe.each<[keyof typeof START, string, Fault]>([
  ['redis', 'is cut off from its broker', CUT],
  ['nats', 'is cut off from its broker', CUT],
  ['redis', 'stands still', STOP],
  ['nats', 'stands still', STOP],
  ['rabbitmq', 'stands still', STOP],
  ['nats', 'and all others lose their broker for 0.3 s', restart(300)],
  ['nats', 'and all others lose their broker for 1 s', restart(1_000)],
  ['nats', 'and all others lose their broker for 3 s', restart(3_000)],
])('over %s, a queue group whose members are on one node that %s', (kind, _, fault) => {
  it('gets each message whose publish has resolved, once, and each request at most once', async () => {
    const { acknowledged, taken, asked, codes } = await play(kind, fault)
    const countsOf = (counts: ReadonlyMap<string, number>) => new Set(counts.values())
    expect(acknowledged.filter((text) => !taken.has(text))).toEqual([])
    expect(countsOf(taken)).toEqual(new Set([1]))
    expect(countsOf(asked)).toEqual(new Set([1]))
    expect([...codes].filter((code) => !RETRYABLE.includes(code))).toEqual([])
    expect(acknowledged.length).toBeGreaterThan(100)
  }, 120_000)
})
