import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { CutProxy } from './cut-proxy.js'
import { KINDS } from './kinds.js'
import { type Keeping, type Kind, nodesOf, publish, RECOVERY } from './lost-end.js'

/** An address behind which one broker stands, and then another one. */
async function movable(first: Keeping) {
  let target = first
  const proxy = new CutProxy(() => Number(new URL(target.url).port))
  onTestFinished(() => proxy.stop())
  const { host, port } = await proxy.start()
  const url = new URL(first.url)
  url.hostname = host
  url.port = String(port)
  const moveTo = (next: Keeping) => {
    proxy.cut()
    target = next
    proxy.mend()
  }
  return { url: String(url), moveTo }
}

type Node = Awaited<ReturnType<ReturnType<typeof nodesOf>>>

async function follows(node: Node, move: () => void): Promise<void> {
  const gapCount = node.gaps.length
  move()
  await vi.waitFor(() => expect(node.gaps.length).toBeGreaterThan(gapCount), RECOVERY)
  await vi.waitFor(() => expect(node.statuses.at(-1)).toBe('up'), RECOVERY)
}

/** An address behind which other brokers stand, each with a log of the same namespace. */
function otherBrokerSuite(kind: Kind): void {
  describe(`another ${kind.name} at the address of a broker`, () => {
    // Symptom: a client that was away resumed as `recovered`, and had missed what its node had published to the other broker.
    // Cause: the log was as the position said. Only the node knows that it was elsewhere meanwhile.
    it.each([
      ['empty', 0],
      ['with messages of its own', 5],
    ])(
      '%s, is told to listeners, and to whoever was away, there and when the first one is back',
      async (_, otherCount) => {
        const [first, other] = await Promise.all([kind.start(), kind.start()])
        onTestFinished(async () => void (await Promise.all([first.stop(), other.stop()])))
        const address = await movable(other)
        const startNode = nodesOf(kind, { ...other, url: address.url })
        if (otherCount > 0) {
          const earlier = await startNode()
          await publish(earlier, 201, 201 + otherCount)
          await earlier.stop()
        }
        address.moveTo(first)
        const node = await startNode()
        const early = await publish(node, 1, 6)
        await follows(node, () => address.moveTo(other))
        const late = await publish(node, 101, 110)
        for (const since of early) expect((await node.read({ since }, ['#'])).gap).toEqual(expect.any(String))
        await follows(node, () => address.moveTo(first))
        await publish(node, 6, 21)
        for (const since of [...early, ...late])
          expect((await node.read({ since }, ['#'])).gap).toEqual(expect.any(String))
        const [since] = await publish(node, 21, 22)
        await publish(node, 22, 24)
        const { gap, messages } = await node.read(since === undefined ? {} : { since }, ['#'])
        expect([gap, messages.length]).toEqual([undefined, 2])
      },
      180_000,
    )
  })
}

otherBrokerSuite(KINDS.redis)
otherBrokerSuite(KINDS.nats)
otherBrokerSuite(KINDS.rabbitmq)
