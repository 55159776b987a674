import { describe, expect, it, onTestFinished } from 'vitest'
import { type CreateTransport, DEFAULT_OPTIONS, eventually, group, RawClient } from 'webmq-conformance'
import { createUwsTransport } from 'webmq-transport-uws'
import { createNativeTransport } from '../../src/adapters/transports/native/transport.js'
import { createWsTransport } from '../../src/adapters/transports/ws/transport.js'
import type { ConnectionId, Transport } from '../../src/kernel/ports/transport.js'
import type { TransportOptions } from '../../src/kernel/ports/transport-options.js'
import { Crowd } from './crowd.js'

const TIMEOUT_MS = 60_000
const GROUP_COUNT = 200

/** The ten groups of a client: spread, so that no two neighbours share all of them. */
function groupsOf(client: number): number[] {
  return Array.from({ length: 10 }, (_, index) => (client * 7 + index * index * 13) % GROUP_COUNT)
}

/** The groups of a multicast: one, or some that share members, or all. */
function groupsOfMulticast(number: number): number[] {
  const count = [1, 3, 12, GROUP_COUNT][number % 4] ?? 1
  return Array.from({ length: count }, (_, index) => (number * 11 + index) % GROUP_COUNT)
}

interface Running {
  readonly transport: Transport
  readonly port: number
  readonly connections: Map<number, ConnectionId>
  readonly closeCodes: Map<number, number>
}

/** A transport on which the client at the path `/n` is in the groups of `n`. */
async function start(create: CreateTransport, options: Partial<TransportOptions>): Promise<Running> {
  const transport = create({ ...DEFAULT_OPTIONS, ...options })
  onTestFinished(() => transport.stop())
  const connections = new Map<number, ConnectionId>()
  const clients = new Map<number, number>()
  const closeCodes = new Map<number, number>()
  const { port } = await transport.start({
    upgrade: ({ id, path }) => {
      clients.set(id, Number(path.slice(1)))
      transport.accept(id)
    },
    open: (connection, upgrade) => {
      const client = clients.get(upgrade) ?? -1
      connections.set(client, connection)
      for (const id of groupsOf(client)) transport.join(connection, group(id))
    },
    message: () => undefined,
    drained: () => undefined,
    closed: (_connection, code) => void closeCodes.set(code, (closeCodes.get(code) ?? 0) + 1),
    failed: (error) => {
      throw error
    },
  })
  return { transport, port, connections, closeCodes }
}

describe.each([
  ['native', createNativeTransport],
  ['ws', createWsTransport],
  ['uws', createUwsTransport],
] as const)('%s transport', (_name, create) => {
  it('delivers every one of 100 multicasts to 10,000 connections in 10 groups each exactly once', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const [clientCount, numberCount] = [10_000, 100]
    const { transport, port, connections, closeCodes } = await start(create, { maxConnections: clientCount })
    const crowd = await Crowd.connect(port, clientCount, numberCount)
    await eventually(() => expect(connections.size).toBe(clientCount))

    const expected = new Uint8Array(clientCount * numberCount)
    let expectedCount = 0
    for (let number = 0; number < numberCount; number++) {
      const groups = groupsOfMulticast(number)
      transport.multicast(groups.map(group), `${number}`, false)
      for (let client = 0; client < clientCount; client++) {
        if (!groupsOf(client).some((id) => groups.includes(id))) continue
        expected[client * numberCount + number] = 1
        expectedCount++
      }
      // Some share a turn of the event loop, some do not.
      if (number % 10 === 9) await new Promise((resolve) => setImmediate(resolve))
    }
    // Between the smallest and the largest possible: the groups do overlap, and do leave connections out.
    expect(expectedCount).toBeGreaterThan(25 * clientCount)
    expect(expectedCount).toBeLessThan(75 * clientCount)

    const report = await crowd.received(expectedCount, 30_000)
    expect(report).toMatchObject({
      openCount: clientCount,
      receivedCount: expectedCount,
      reorderedCount: 0,
      closeCodes: {},
    })
    expect(Buffer.compare(report.counts, expected)).toBe(0)
    expect(transport.stats()).toMatchObject({ connections: clientCount, slowConsumerCount: 0 })
    await eventually(() => expect(transport.stats()).toMatchObject({ deliveredCount: expectedCount, outboxBytes: 0 }))

    await transport.stop()
    expect(closeCodes.get(1001)).toBe(clientCount)
  })

  it('closes one slow consumer with 4008 while 1,000 others get everything, in bounded memory', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const [clientCount, numberCount] = [1_000, 4_000]
    const maxOutboxBytes = 512 * 1024
    const { transport, port, connections, closeCodes } = await start(create, {
      maxOutboxBytes,
      closeTimeoutMs: 1_000,
      maxConnections: 2_000,
    })
    const crowd = await Crowd.connect(port, clientCount, numberCount)
    const slow = await RawClient.open(port, `/${clientCount}`)
    slow.socket.pause()
    await eventually(() => expect(connections.size).toBe(clientCount + 1))
    // What fills the kernel's buffers goes to the slow one alone, in steps that leave it within its limit.
    const all = group(GROUP_COUNT)
    for (const connection of connections.values()) transport.join(connection, all)
    const rssBeforeBytes = process.memoryUsage().rss
    const [peak, filler] = [{ outboxBytes: 0, rssBytes: 0 }, Buffer.alloc(32 * 1024)]
    const slowConnection = connections.get(clientCount) as ConnectionId
    let number = 0
    while (!closeCodes.has(4008) && number < numberCount) {
      for (let index = 0; index < 4; index++) transport.send(slowConnection, filler, true)
      for (let index = 0; index < 10; index++) transport.multicast([all], `${number++}`, false)
      await crowd.received(number * clientCount, 10_000)
      peak.outboxBytes = Math.max(peak.outboxBytes, transport.stats().outboxBytes)
      peak.rssBytes = Math.max(peak.rssBytes, process.memoryUsage().rss - rssBeforeBytes)
    }
    const report = await crowd.received(number * clientCount, 10_000)
    expect([...closeCodes]).toEqual([[4008, 1]])
    expect(report).toMatchObject({ receivedCount: number * clientCount, reorderedCount: 0, closeCodes: {} })
    expect(transport.stats()).toMatchObject({ connections: clientCount, slowConsumerCount: 1 })
    expect(peak.outboxBytes).toBeLessThan(maxOutboxBytes + 5 * filler.length)
    // 16 MB when this was written, most of it the buffers of the first large sends.
    expect(peak.rssBytes).toBeLessThan(64 * 1024 * 1024)
    slow.destroy()
  })
})
