import { randomBytes } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import { brokerOptions, historyOf } from 'webmq-conformance'
import { type Service, startNats, startRabbitmq, startRedis } from 'webmq-services'
import { createNatsBroker } from '../../src/brokers/nats/broker.js'
import { createRabbitmqBroker } from '../../src/brokers/rabbitmq/broker.js'
import { createRedisBroker } from '../../src/brokers/redis/broker.js'
import type { RemoteBrokerOptions } from '../../src/brokers/remote/options.js'
import type { Broker, Position } from '../../src/ports/broker.js'
import { formatPosition, parsePosition } from '../../src/ports/position.js'

interface Kind {
  readonly name: string
  readonly start: () => Promise<Service>
  readonly create: (options: RemoteBrokerOptions & { readonly broker: string }) => Promise<Broker>
}

const KINDS: readonly Kind[] = [
  { name: 'redis', start: () => startRedis({ args: ['--appendonly', 'yes'] }), create: createRedisBroker },
  { name: 'nats', start: () => startNats({ hasJetStream: true }), create: createNatsBroker },
  { name: 'rabbitmq', start: () => startRabbitmq({ isPrivate: true }), create: createRabbitmqBroker },
]
const NOWHERE: Position = { epoch: 'nowhere', offset: 0, fingerprint: 0 }

// Symptom: a client resumed as `recovered`, though the log had lost what it had seen and had given the same offsets to
// other messages. Cause: only a node that was alive could know what had stood there.
describe.each(KINDS)('a log at $name whose data is put back with no node alive', ({ start, create }) => {
  it('is a gap for everybody who has seen what it has lost, from the first page on', async () => {
    const service = await start()
    onTestFinished(() => service.stop())
    const brokerNamespace = `test-${randomBytes(6).toString('hex')}`
    const startNode = async () => {
      const broker = await create(
        brokerOptions({ maxPayloadBytes: 262_144, ...historyOf('#=1000'), brokerNamespace, broker: service.url }),
      )
      onTestFinished(() => broker.stop())
      await broker.start({
        deliver: () => true,
        status: () => undefined,
        gap: () => undefined,
        refused: () => undefined,
      })
      return broker
    }
    const publish = async (broker: Broker, from: number, to: number): Promise<Position[]> => {
      const positions: Position[] = []
      for (let number = from; number < to; number++) {
        const key = number % 10 === 0 ? 'busy.other' : 'busy.one'
        const { position = NOWHERE } = await broker.publish({ key, payload: Buffer.from(`${number}`), isBinary: false })
        positions.push(position)
      }
      return positions
    }
    const first = await startNode()
    const kept = await publish(first, 1, 51)
    await first.stop()
    await service.keepData?.()
    const second = await startNode()
    const lost = await publish(second, 51, 101)
    const { messages, gap } = await second.read({ since: lost[39] ?? NOWHERE }, ['#'])
    expect([messages.length, gap]).toEqual([10, undefined])
    await second.stop()
    await service.restoreData?.()
    const third = await startNode()
    await publish(third, 101, 181)
    for (const broker of [third, await startNode()]) {
      for (const since of [lost[0], lost[9], lost[48], lost[49]]) {
        const position = parsePosition(formatPosition(since ?? NOWHERE))
        for (const pattern of ['busy.one', 'quiet.#', '#']) {
          const page = await broker.read({ since: position, limit: 5 }, [pattern])
          expect([position.offset, pattern, page.gap]).toEqual([position.offset, pattern, expect.any(String)])
        }
      }
      // Of an earlier server.
      const { epoch, offset } = (await broker.position()) ?? NOWHERE
      const old = parsePosition(`${epoch}:${offset.toString(36)}`)
      expect((await broker.read({ since: old }, ['#'])).gap).toEqual(expect.any(String))
    }
    expect(kept).toHaveLength(50)
  }, 180_000)
})
