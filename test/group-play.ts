import { setTimeout as sleep } from 'node:timers/promises'
import { expect, type TestContext, vi } from 'vitest'
import { type FaultProxy, type Service, startFaultProxy } from 'webmq-services'
import { ProtocolClient } from '../packages/server/test/protocol-client.js'
import { type ServerProcess, startServerProcess } from './server-process.js'

const EVERY_MS = 20
/** Before the fault, and after it: others hear of the node again, and what waits is sent. */
const CALM_MS = 1_000
const SETTLE_MS = 6_000
const RETRY_MS = 150
const RETRYABLE = ['E_BROKER_UNAVAILABLE', 'E_TIMEOUT', 'E_RATE_LIMIT']

export interface Scene {
  readonly broker: Service
  /** In front of the broker, for the node of the members alone. */
  readonly link: FaultProxy
  readonly members: ServerProcess
}

export type Fault = (scene: Scene) => Promise<void>

async function connect({ url }: ServerProcess): Promise<ProtocolClient> {
  return await ProtocolClient.open(`${url.replace('http', 'ws')}/ws`)
}

/** The programs of the two nodes; default: that of this checkout. */
export interface Programs {
  readonly members?: string
  readonly publishers?: string
}

/**
 * Publishes and asks at one node while all members and responders are at another one, and a fault is in effect. What fails is
 * published again with its id.
 */
export async function playGroups(
  broker: Service,
  fault: Fault,
  onTestFinished: TestContext['onTestFinished'],
  programs: Programs = {},
) {
  const link = await startFaultProxy(broker)
  onTestFinished(() => link.stop())
  const start = async (url: string, program?: string) => {
    const flags = ['--broker', url, '--broker-heartbeat', '1s', '--history', 'jobs.logged=1000']
    const server = await startServerProcess(0, flags, program === undefined ? {} : { program })
    onTestFinished(async () => void (await server.kill('SIGKILL')))
    return server
  }
  const members = await start(link.url, programs.members)
  const publishers = await start(broker.url, programs.publishers)
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
  const countsOf = (counts: ReadonlyMap<string, number>) => [...new Set(counts.values())]
  return {
    acknowledgedCount: acknowledged.length,
    lost: acknowledged.filter((text) => !taken.has(text)),
    /** How often members got a message, and responders a request. */
    counts: { taken: countsOf(taken), asked: countsOf(asked) },
    /** Errors of all publishes and requests that no retry is for. */
    final: [...codes].filter((code) => !RETRYABLE.includes(code)),
  }
}
