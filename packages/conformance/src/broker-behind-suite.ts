import { describe, expect, it, onTestFinished } from 'vitest'
import type { Broker, Position } from 'webmq-server/ports'
import { DeliveryRecorder, deliveredUpTo, deliveryOf, NOWHERE, text } from './broker/harness.js'
import { ListeningNode } from './broker/listening-node.js'
import { eventually } from './transport/eventually.js'

/** Two nodes of one log; the link of one can stand still. */
export interface BrokerBehindSystem {
  /** @param isFaulty Its link is the one that `inject` breaks. */
  createNode(isFaulty: boolean): Broker | Promise<Broker>
  inject(): Promise<void>
  /** Ends the fault; the node then recovers by itself. */
  heal(): Promise<void>
  end(): void | Promise<void>
}

/** More than a node reads at once. */
const AHEAD_COUNT = 1_000
const TIMEOUT_MS = 60_000

/**
 * A client moves to a node that has read less of the log than the client has. The node must not replay anything at or
 * before the client's position, and must not say that the epoch has changed: it waits, and then sends the client on.
 * For vitest.
 *
 * @param name Names the broker and the fault in the report.
 */
export function brokerBehindSuite(
  name: string,
  createSystem: () => BrokerBehindSystem | Promise<BrokerBehindSystem>,
): void {
  describe(`broker ${name}, a node that is behind`, () => {
    it('sends on whoever knows more than it, and serves them once it has caught up', {
      timeout: TIMEOUT_MS,
    }, async () => {
      const system = await createSystem()
      const brokers = [await system.createNode(false), await system.createNode(true)] as const
      onTestFinished(async () => {
        await system.heal()
        await Promise.all(brokers.map((broker) => broker.stop()))
        await system.end()
      }, TIMEOUT_MS)
      const [a, b] = brokers.map((broker) => new ListeningNode(broker, new DeliveryRecorder()))
      if (a === undefined || b === undefined) throw new Error('no nodes')
      for (const node of [a, b]) {
        await node.start()
        await node.bind('#')
      }
      const { position: start = NOWHERE } = await a.broker.publish(text('key.0', '0'))
      await deliveredUpTo(b.sink, '0')

      await system.inject()
      const numbers = Array.from({ length: AHEAD_COUNT }, (_, index) => index + 1)
      const positions = await Promise.all(
        numbers.map(async (number) => {
          const { position = NOWHERE } = await a.broker.publish(text(`key.${number % 3}`, `${number}`))
          return position
        }),
      )
      const moves = [1, 2, 500, 999, 1_000].map((number) => ({ number, since: positions[number - 1] ?? NOWHERE }))
      const read = async (since: Position, pattern: string) => {
        const result = await b.broker.read({ since }, [pattern])
        return { gap: result.gap, texts: result.messages.map((message) => deliveryOf(message).text) }
      }
      const outcomes = await Promise.allSettled(
        moves.flatMap(({ since }) => ['#', 'key.1'].map((pattern) => read(since, pattern))),
      )
      expect(outcomes).toMatchObject(
        outcomes.map(() => ({ status: 'rejected', reason: { code: 'E_NODE_BEHIND', retryable: true } })),
      )
      expect(b.broker.stats().behindCount).toBe(outcomes.length)
      // A client that was on this node goes on here.
      expect(await read(start, '#')).toEqual({ texts: [], gap: undefined })

      await system.heal()
      for (const { number, since } of moves) {
        const missed = numbers.slice(number).map(String)
        const { texts, gap } = await eventually(() => read(since, '#'), TIMEOUT_MS / 2)
        // The rest is on its way, and comes live.
        expect({ texts, gap }).toEqual({ texts: missed.slice(0, texts.length), gap: undefined })
      }
      await deliveredUpTo(b.sink, `${AHEAD_COUNT}`)
      expect(b.sink.texts).toEqual(['0', ...numbers.map(String)])
      // The only one is for patterns that the rules do not cover.
      expect(b.sink.gaps.filter((reason) => reason !== 'broker-lost')).toEqual([])
      expect(await read(start, '#')).toEqual({ texts: numbers.map(String), gap: undefined })
    })
  })
}
