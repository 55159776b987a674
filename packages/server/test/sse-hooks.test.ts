import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { eventually } from 'webmq-conformance'
import { createServer, type Hooks, type ServerOptions } from '../src/index.js'
import { SseReader } from './sse-reader.js'

const uncaught: unknown[] = []
const note = (error: unknown) => uncaught.push(error)

beforeAll(() => {
  process.on('uncaughtException', note).on('unhandledRejection', note)
})

afterAll(() => {
  process.off('uncaughtException', note).off('unhandledRejection', note)
  expect(uncaught).toEqual([])
})

async function start(options: ServerOptions) {
  const server = createServer({ port: 0, threads: 1, logLevel: 'silent', ...options })
  onTestFinished(() => server.stop({ drainMs: 0 }))
  const { port } = await server.start()
  return { server, port }
}

/** The refusal and the end of a stream that was refused after its response had begun. */
async function refusalOf(port: number, query: string) {
  const reader = new SseReader(port, query)
  const { data: bye } = await reader.next('bye')
  await eventually(() => expect(reader.client.isEnded).toBe(true))
  expect(reader.named('live')).toEqual([])
  return { refused: reader.named('refused').map(({ data }) => data), bye }
}

describe.each(['native', 'ws'] as const)('hooks decide about event streams on the %s transport', (transport) => {
  // Such a code is in no table. The session could not end with it, and the process would have died of the rejection.
  it.each(['connect', 'listen'] as const)('%s refuses one with a code of its own, for good', async (hook) => {
    const hooks: Hooks = { [hook]: async () => ({ refuse: { code: 'E_NO_CREDIT', message: 'pay first' } }) }
    const { server, port } = await start({ transport, insecure: true, hooks })
    const { refused, bye } = await refusalOf(port, 'listen=a')
    expect(refused).toMatchObject([{ code: 'E_NO_CREDIT', message: 'pay first', retryable: false }])
    expect(bye).toEqual({ code: 'E_CONNECTION_REFUSED', closeCode: 4504 })
    await eventually(() => expect(server.stats().connectionCount).toBe(0))
  })
})

it('a hook `listen` is asked about each pattern, and one refusal ends the stream', async () => {
  const asked: unknown[] = []
  const hooks: Hooks = {
    listen: ({ op, pattern, isReplay }) => {
      asked.push([op, pattern, isReplay])
      return pattern === 'b' ? { refuse: {} } : undefined
    },
  }
  const { port } = await start({ insecure: true, hooks })
  const { refused } = await refusalOf(port, 'listen=a&listen=b&listen=c&last=1')
  expect(refused).toMatchObject([{ code: 'E_FORBIDDEN', retryable: false }])
  expect(asked).toEqual([
    ['listen', 'a', true],
    ['listen', 'b', true],
  ])
  await SseReader.open(port, 'listen=a&listen=c')
})

it('a hook that throws refuses the stream, which may be asked for again', async () => {
  const hooks: Hooks = {
    listen: () => {
      throw new Error('a bug')
    },
  }
  const { port } = await start({ insecure: true, hooks })
  const { refused, bye } = await refusalOf(port, 'listen=a')
  expect(refused).toMatchObject([{ code: 'E_HOOK_FAILED', retryable: true }])
  expect(bye).toEqual({ code: 'E_HOOK_FAILED', closeCode: 4014 })
})

it('grants of a hook `connect` apply: to the patterns that they cover, and to no others', async () => {
  const paths: string[] = []
  const hooks: Hooks = {
    connect: ({ path, headers }) => {
      paths.push(path)
      return headers.cookie === 'sid=ann'
        ? { user: 'ann', grants: [{ keys: ['chat.#'], allow: ['listen'] as const }] }
        : undefined
    },
  }
  const { server, port } = await start({ hooks })
  const reader = await SseReader.open(port, 'listen=chat.%23', { cookie: 'sid=ann' })
  await server.publish('chat.1', 'hi')
  await eventually(() => expect(reader.messages).toEqual([{ key: 'chat.1', payload: 'hi' }]))
  const other = new SseReader(port, 'listen=chat.1&listen=news', { cookie: 'sid=ann' })
  expect((await other.next('refused')).data.code).toBe('E_FORBIDDEN')
  const unknown = new SseReader(port, 'listen=chat.1')
  expect((await unknown.next('refused')).data.code).toBe('E_FORBIDDEN')
  for (const { client } of [other, unknown]) await eventually(() => expect(client.isEnded).toBe(true))
  expect(paths).toEqual(['/sse', '/sse', '/sse'])
})
