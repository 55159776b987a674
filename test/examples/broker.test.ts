import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { brokerOptions, brokerSuite, historyOf } from 'webmq-conformance'
import { createFileBroker } from '../../examples/broker/broker.js'
import { ApiServer } from '../../packages/server/test/api-server.js'

const CAPABILITIES = { ordered: true, confirms: true, queueGroups: true, manyNodes: true }
const LOGGING = { history: true, retained: false, sharedLog: true, durable: true }

const newFolder = () => mkdtemp(path.join(tmpdir(), 'webmq-file-broker-'))
const end = (folder: string) => rm(folder, { recursive: true })

brokerSuite(
  'of an example, with history',
  async () => {
    const folder = await newFolder()
    const options = brokerOptions({})
    return {
      createNode: (history = historyOf('#=1000')) => createFileBroker(folder, { ...options, ...history }),
      end: () => end(folder),
    }
  },
  { ...CAPABILITIES, ...LOGGING },
)

brokerSuite(
  'of an example, without history',
  async () => {
    const folder = await newFolder()
    const options = brokerOptions({})
    return { createNode: () => createFileBroker(folder, options), end: () => end(folder) }
  },
  { ...CAPABILITIES, history: false, retained: false, sharedLog: false, durable: false },
)

it('gives servers one log: history and a stream of one are those of the other', async () => {
  const folder = await newFolder()
  onTestFinished(() => end(folder))
  const options = brokerOptions(historyOf('chat.#=100'))
  const start = async () => {
    const server = await ApiServer.start({ broker: createFileBroker(folder, options) })
    onTestFinished(() => server.server.stop())
    return server.server
  }
  const [one, other] = [await start(), await start()]
  const { position } = await one.publish('chat.1', { n: 1 })
  expect(position).toBeDefined()
  const payloads = async () => (await other.history('chat.1')).messages.map(({ payload }) => payload)
  await expect.poll(payloads).toEqual([{ n: 1 }])
  const writer = await one.stream('chat.story')
  await writer.append('once upon')
  await writer.end()
  const story = async () => (await other.readStream('chat.story')).text
  await expect.poll(story).toBe('once upon')
})
