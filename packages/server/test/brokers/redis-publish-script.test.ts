import { execFile, spawnSync } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { historyOf } from 'webmq-conformance'
import { obtainService, type Service, startRedis } from 'webmq-services'
import { blocksFor } from '../../../../test/docs/examples.js'
import { formatPosition, parsePosition } from '../../src/kernel/ports/position.js'
import { freshNamespace, OPTIONS, startNode, text } from './redis-node.js'

const { exampleOf } = blocksFor(import.meta.url)
const run = promisify(execFile)

let service: Service
let plain: Redis

beforeAll(async () => {
  service = await startRedis({ isPrivate: true })
  plain = new Redis(service.url)
})
afterAll(async () => {
  plain.disconnect()
  await service.stop()
})

async function startLogging(brokerNamespace = freshNamespace()) {
  const node = await startNode({ ...OPTIONS, ...historyOf('chat.#=1000'), broker: service.url, brokerNamespace })
  return { ...node, brokerNamespace, log: `${brokerNamespace}/log` }
}

type LoggingNode = Awaited<ReturnType<typeof startLogging>>

async function publish({ log }: LoggingNode, ...args: (string | Buffer)[]): Promise<string> {
  const script = (await plain.hget(`${log}/state`, 'publish')) ?? ''
  return String(await plain.eval(script, 1, log, ...args))
}

async function read({ broker }: LoggingNode, since: string) {
  const { messages, gap } = await broker.read({ since: parsePosition(since) }, ['chat.#'])
  return { texts: messages.map(({ payload }) => Buffer.from(payload).toString()), gap }
}

const NONE = { epoch: 'none', offset: 0, fingerprint: 0 }

/** With `redis-cli` beside the server, which need not be on PATH. */
async function redisTools(): Promise<NodeJS.ProcessEnv> {
  const { place = '' } = await obtainService('redis')
  return { ...process.env, PATH: [path.dirname(place), process.env.PATH].join(path.delimiter) }
}

describe('another program at the log of a redis', () => {
  it('publishes with the command of the documentation, in one order with nodes', async (test) => {
    const env = await redisTools()
    test.skip(spawnSync('redis-cli', ['--version'], { env }).error !== undefined, 'redis-cli is not installed')
    const command = exampleOf('packages/broker-redis/README.md', 'publish-script').code
    const node = await startLogging('webmq')
    await node.broker.bind('chat.42')
    const { position = NONE } = await node.broker.publish(text('chat.42', 'of a node'))
    const port = new URL(service.url).port
    const { stdout } = await run('sh', ['-c', command.replaceAll('redis-cli', `redis-cli -p ${port}`)], { env })
    await vi.waitFor(() => expect(node.sink.messages).toHaveLength(2))
    const told = node.sink.messages[1]
    expect(told).toMatchObject({ key: 'chat.42', text: '{"text":"hi"}', isBinary: false })
    expect(told?.position && formatPosition(told.position)).toBe(stdout.trim())
    expect(told?.position?.offset).toBe(position.offset + 1)
  })

  // It reached who was there and was `recovered` for who was not, with nothing replayed and no gap.
  it('is refused with PUBLISH to a logged key, for those who listen as for those who resume', async () => {
    const node = await startLogging()
    for (const pattern of ['chat.1', 'chat.*', '#']) await node.broker.bind(pattern)
    const before = node.broker.stats().malformedCount
    await plain.publish(`${node.brokerNamespace}:chat.1`, '"theirs"')
    await vi.waitFor(() => expect(node.broker.stats().malformedCount).toBe(before + 1))
    // The listeners are told a gap.
    expect(node.sink.refusals.map(({ pattern }) => pattern)).toEqual(['chat.1'])
    await node.broker.publish(text('chat.1', 'mine'))
    await vi.waitFor(() => expect(node.sink.messages.map(({ text }) => text)).toEqual(['mine']))
  })

  it('is heard by those who resume, on any node, also by one that starts later', async () => {
    const node = await startLogging()
    const since = await publish(node, 'chat.1', 'not JSON')
    await publish(node, 'chat.1', Buffer.from([0, 1, 0xff]))
    await publish(node, 'chat.2', '{"a":1}', 'id-1')
    expect(await publish(node, 'chat.2', '{"a":2}', 'id-1')).toMatch(/^\w+:3\.[\w-]{5} duplicate$/)
    await vi.waitFor(async () => expect((await read(node, since)).texts).toHaveLength(2))
    const later = await startLogging(node.brokerNamespace)
    for (const each of [node, later])
      expect(await read(each, since)).toEqual({ texts: [expect.anything(), '{"a":1}'], gap: undefined })
    const { messages } = await later.broker.read({ last: 10 }, ['chat.#'])
    expect(messages.map(({ isBinary, payload }) => [isBinary, payload.length])).toEqual([
      [true, 8],
      [true, 3],
      [false, 7],
    ])
  })

  it('is told what is wrong with its call', async () => {
    const node = await startLogging()
    await expect(publish(node, 'chat.1')).rejects.toThrow('use <key> <payload>')
    await expect(publish(node, 'x'.repeat(256), 'x')).rejects.toThrow('at most 255 bytes')
    const before = node.broker.stats().malformedCount
    // Only nodes can tell, and nobody gets it.
    const position = await publish(node, 'chat.*', '"to a pattern"')
    await vi.waitFor(() => expect(node.broker.stats().malformedCount).toBe(before + 1))
    expect(await read(node, position)).toEqual({ texts: [], gap: undefined })
  })

  it('is refused while no node has looked at the log after a restart of the server', async () => {
    const own = await startRedis({ isPrivate: true })
    onTestFinished(() => own.stop())
    const brokerNamespace = freshNamespace()
    const node = await startNode({ ...OPTIONS, ...historyOf('chat.#=9'), broker: own.url, brokerNamespace })
    await node.broker.publish(text('chat.1', 'a'))
    await node.broker.stop()
    const first = new Redis(own.url)
    await first.save()
    first.disconnect()
    await own.kill()
    await own.restart()
    const redis = new Redis(own.url)
    onTestFinished(() => redis.disconnect())
    const log = `${brokerNamespace}/log`
    const call = async () =>
      redis.eval((await redis.hget(`${log}/state`, 'publish')) ?? '', 1, log, 'chat.1', '"theirs"')
    await expect(call()).rejects.toThrow('REIGN')
    await startNode({ ...OPTIONS, ...historyOf('chat.#=9'), broker: own.url, brokerNamespace })
    expect(await call()).toMatch(/^\w+:\w+\.[\w-]{5}$/)
  })
})
