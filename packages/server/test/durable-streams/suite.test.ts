import { runConformanceTests } from '@durable-streams/server-conformance-tests'
import { afterAll, beforeAll, beforeEach, describe } from 'vitest'
import { createServer } from '../../src/index.js'
import { NOT_PASSED } from './not-passed.js'

const server = createServer({
  port: 0,
  host: '127.0.0.1',
  transport: 'native',
  logLevel: 'fatal',
  history: ['#=100000,1d'],
  streamsPath: '/v1/stream',
  // The page of the suite's preflight.
  origins: ['https://example.com'],
})
const config = { baseUrl: '', longPollTimeoutMs: 25_000 }

beforeAll(async () => {
  const { port } = await server.start()
  config.baseUrl = `http://127.0.0.1:${port}`
})

afterAll(() => server.stop({ drainMs: 0 }))

describe('the suite of Durable Streams', () => {
  beforeEach(({ task }) => {
    // Then it must fail: who mends it takes it from the list.
    if (NOT_PASSED.has(`${task.suite?.name} > ${task.name}`)) Object.assign(task, { fails: true })
  })
  runConformanceTests(config)
})
