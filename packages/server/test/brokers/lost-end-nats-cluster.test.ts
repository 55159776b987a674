import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Service } from 'webmq-services'
import type { Broker, Position } from '../../src/ports/broker.js'
import { KINDS, natsUrlOf, startNatsServers } from './kinds.js'
import { lostEndSuite, nodesOf, publish, RECOVERY, together } from './lost-end.js'

const KIND = KINDS['nats-cluster']

lostEndSuite(KIND)

const PUBLISHED = 40
const TOTAL = 60

/** Numbers that are missing for whoever comes back with a position and is told no gap. */
async function missedInSilence(broker: Broker, given: readonly Position[]): Promise<string[]> {
  const wrong: string[] = []
  for (const [index, since] of given.entries()) {
    const { messages, gap } = await broker.read({ since }, ['#'])
    if (gap !== undefined) continue
    const got = new Set(messages.map(({ payload }) => Number(Buffer.from(payload).toString())))
    for (let number = index + 2; number < TOTAL; number++)
      if (!got.has(number)) wrong.push(`${number} after ${index + 1}`)
  }
  return wrong
}

async function startServers() {
  const servers = await startNatsServers()
  onTestFinished(async () => void (await Promise.all(servers.map((server) => server.stop()))))
  return { servers, startNode: nodesOf(KIND, together(natsUrlOf(servers), servers)) }
}

/** The first server keeps a copy of its data, and more is published after that. */
async function publishAround(
  first: Service | undefined,
  startNode: Awaited<ReturnType<typeof startServers>>['startNode'],
) {
  const before = await startNode()
  const given = await publish(before, 1, 21)
  await before.stop()
  await first?.keepData?.()
  const node = await startNode()
  given.push(...(await publish(node, 21, PUBLISHED)))
  return { node, given }
}

// Two of three with older data are more than a cluster can spare: JetStream may then serve different logs.
describe('a log at a NATS cluster of which one server comes back with older data', () => {
  it('is whole or a gap, while a node lives', async () => {
    const { servers, startNode } = await startServers()
    const { node, given } = await publishAround(servers[0], startNode)
    await servers[0]?.restoreData?.()
    await vi.waitFor(() => expect(node.statuses.at(-1)).toBe('up'), RECOVERY)
    await publish(node, PUBLISHED, TOTAL)
    for (const broker of [node, await startNode()]) expect(await missedInSilence(broker, given)).toEqual([])
  }, 180_000)

  it('is whole or a gap, when all servers were gone at once, and no node lives', async () => {
    const { servers, startNode } = await startServers()
    const [first, ...others] = servers
    const { node, given } = await publishAround(first, startNode)
    await node.stop()
    await Promise.all(servers.map((server) => server.kill()))
    await Promise.all([first?.restoreData?.(), ...others.map((server) => server.restart())])
    const after = await startNode()
    await publish(after, PUBLISHED, TOTAL)
    for (const broker of [after, await startNode()]) expect(await missedInSilence(broker, given)).toEqual([])
  }, 180_000)
})
