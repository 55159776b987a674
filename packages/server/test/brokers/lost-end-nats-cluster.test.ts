import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { WebMQError } from 'webmq-client/protocol'
import type { Service } from 'webmq-services'
import type { Broker, Position } from '../../src/kernel/ports/broker.js'
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

/** Some servers keep a copy of their data, and more is published after that. */
async function publishAround(
  startNode: Awaited<ReturnType<typeof startServers>>['startNode'],
  keeping: readonly (Service | undefined)[],
) {
  const before = await startNode()
  const given = await publish(before, 1, 21)
  await before.stop()
  await Promise.all(keeping.map((server) => server?.keepData?.()))
  const node = await startNode()
  given.push(...(await publish(node, 21, PUBLISHED)))
  return { node, given }
}

describe('a log at a NATS cluster of which some servers come back with older data', () => {
  it('is whole or a gap, when one server has older data, while a node lives', async () => {
    const { servers, startNode } = await startServers()
    const { node, given } = await publishAround(startNode, [servers[0]])
    await servers[0]?.restoreData?.()
    await vi.waitFor(() => expect(node.statuses.at(-1)).toBe('up'), RECOVERY)
    await publish(node, PUBLISHED, TOTAL)
    for (const broker of [node, await startNode()]) expect(await missedInSilence(broker, given)).toEqual([])
  })

  it('is whole or a gap, when one server has older data, all were gone at once, and no node lives', async () => {
    const { servers, startNode } = await startServers()
    const [first, ...others] = servers
    const { node, given } = await publishAround(startNode, [first])
    await node.stop()
    await Promise.all(servers.map((server) => server.kill()))
    await Promise.all([first?.restoreData?.(), ...others.map((server) => server.restart())])
    const after = await startNode()
    await publish(after, PUBLISHED, TOTAL)
    for (const broker of [after, await startNode()]) expect(await missedInSilence(broker, given)).toEqual([])
  })

  // Symptom: a node got no more messages, and answered logged publishes with `E_TIMEOUT`. Cause: two of three with older data
  // are more than a cluster can spare; JetStream stored at lower sequences than its consumer had sent.
  it('is whole or a gap, when two servers have older data', async () => {
    const { servers, startNode } = await startServers()
    const [first, second, third] = servers
    const { node, given } = await publishAround(startNode, [first, second])
    await node.stop()
    await Promise.all(servers.map((server) => server.kill()))
    await Promise.all([first?.restoreData?.(), second?.restoreData?.(), third?.restart()])
    const play = async () => {
      const after = await startNode()
      await publish(after, PUBLISHED, TOTAL)
      return [after, await startNode()]
    }
    const brokers = await play().catch((cause: WebMQError) => {
      // Such a cluster may also have no leader for long, which nodes say.
      expect(cause.code).toBe('E_BROKER_UNAVAILABLE')
      return []
    })
    for (const broker of brokers) expect(await missedInSilence(broker, given)).toEqual([])
  })
})
