import { runConformanceTests } from '@durable-streams/server-conformance-tests'
import { afterAll, beforeAll, beforeEach, describe, expect } from 'vitest'
import { type ServiceKind, sharedService } from 'webmq-services'
import { createServer, type WebMQServer } from '../../src/index.js'
import { RoundRobin } from '../round-robin.js'
import { NOT_PASSED } from './not-passed.js'

const NODES = 3

/** Plays the suite of Durable Streams against three nodes: each request goes to the next one. */
export function suiteOfNodes(kind: ServiceKind): void {
  const config = { baseUrl: '', longPollTimeoutMs: 25_000 }
  const servers: WebMQServer[] = []
  let balancer: RoundRobin | undefined

  beforeAll(async () => {
    const { url: broker } = await sharedService(kind)
    const ports: number[] = []
    for (let node = 0; node < NODES; node++) {
      const server = createServer({
        ...{ port: 0, host: '127.0.0.1', transport: 'native', logLevel: 'fatal' },
        ...{ broker, brokerNamespace: `suite-${process.pid}`, history: ['#=100000,1d'] },
        ...{ streamsPath: '/v1/stream', origins: ['https://example.com'] },
      })
      servers.push(server)
      ports.push((await server.start()).port)
    }
    balancer = await RoundRobin.start(ports)
    config.baseUrl = balancer.url
  })

  afterAll(async () => {
    const counts = balancer?.counts ?? []
    await balancer?.stop()
    await Promise.all(servers.map((server) => server.stop({ drainMs: 0 })))
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1)
    expect(Math.min(...counts)).toBeGreaterThan(0)
  })

  describe(`the suite of Durable Streams at three nodes with ${kind}`, () => {
    beforeEach(({ task }) => {
      // The same as on one node.
      if (NOT_PASSED.has(`${task.suite?.name} > ${task.name}`)) Object.assign(task, { fails: true })
    })
    runConformanceTests(config)
  })
}
