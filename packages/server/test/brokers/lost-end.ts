import { randomBytes } from 'node:crypto'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { brokerOptions, historyOf } from 'webmq-conformance'
import type { Service, ServiceOptions } from 'webmq-services'
import type { RemoteBrokerOptions } from '../../src/adapters/brokers/remote/options.js'
import type { Broker, BrokerStatus, Position } from '../../src/kernel/ports/broker.js'
import { formatPosition, parsePosition } from '../../src/kernel/ports/position.js'

/** A broker, of one server or more, whose data can be put back. */
export type Keeping = Pick<Service, 'url' | 'restart' | 'keepData' | 'restoreData' | 'damageLog' | 'wipe'> & {
  stop(): Promise<void>
}

/** A kind of broker, and how a node reaches it. */
export interface Kind {
  readonly name: string
  readonly start: (options?: Pick<ServiceOptions, 'dataParent'>) => Promise<Keeping>
  /** Resolves when it survives a kill. */
  readonly settled?: () => Promise<void>
  /** What a disk without a byte left may do to it for good, in its words, and what docs/running-brokers.md tells an operator to do. */
  readonly afterFullDisk?: { readonly says: RegExp; repair(broker: Keeping): Promise<void> }
  readonly create: (options: RemoteBrokerOptions & { readonly broker: string }) => Broker | Promise<Broker>
}

/** All servers are down before the first one comes back: none is to tell another one what it has lost. */
export function together(url: string, services: readonly Service[]): Keeping {
  const all = (call: (service: Service) => Promise<void> | undefined) => Promise.all(services.map(call))
  return {
    url,
    keepData: async () => void (await all((service) => service.keepData?.())),
    restoreData: async () => {
      await all((service) => service.kill())
      await all((service) => service.restoreData?.())
    },
    restart: async () => void (await all((service) => service.restart())),
    damageLog: async (change) => {
      await all((service) => service.kill())
      await all((service) => service.damageLog?.(change))
    },
    wipe: async () => {
      await all((service) => service.kill())
      await all((service) => service.wipe?.())
    },
    stop: async () => void (await all((service) => service.stop())),
  }
}

export function hostsOf(urls: readonly string[]): string {
  return urls.map((url) => new URL(url).host).join()
}

export const RECOVERY = { timeout: 60_000, interval: 100 }
/** How often the data of a broker is put back. In a soak: 100 times with `WEBMQ_TEST_RUNS=100`. */
const RESTORE_COUNT = Number(process.env.WEBMQ_TEST_RUNS ?? 1)
export const NOWHERE: Position = { epoch: 'nowhere', offset: 0, fingerprint: 0 }

/** Starts nodes of one namespace, which run until the end of the test. */
export function nodesOf(
  { create }: Kind,
  { url }: Keeping,
  brokerNamespace = `test-${randomBytes(6).toString('hex')}`,
) {
  return async () => {
    const options = {
      ...brokerOptions({ maxPayloadBytes: 262_144, ...historyOf('#=1000') }),
      brokerTimeoutMs: 30_000,
      brokerStartTimeoutMs: 30_000,
    }
    const broker = await create({ ...options, brokerNamespace, broker: url })
    const gaps: string[] = []
    const statuses: BrokerStatus[] = []
    onTestFinished(() => broker.stop())
    await broker.start({
      deliver: () => true,
      status: (status) => statuses.push(status),
      gap: (reason) => gaps.push(reason),
      refused: () => gaps.push('refused'),
    })
    return Object.assign(broker, { gaps, statuses })
  }
}

export async function publish(broker: Broker, from: number, to: number): Promise<Position[]> {
  const positions: Position[] = []
  for (let number = from; number < to; number++) {
    const key = number % 10 === 0 ? 'busy.other' : 'busy.one'
    const { position = NOWHERE } = await broker.publish({ key, payload: Buffer.from(`${number}`), isBinary: false })
    positions.push(position)
  }
  return positions
}

async function service({ start }: Kind): Promise<Keeping> {
  const service = await start()
  onTestFinished(() => service.stop())
  return service
}

async function loseEnd(kind: Kind, broken: Keeping): Promise<void> {
  const startNode = nodesOf(kind, broken)
  const first = await startNode()
  const kept = await publish(first, 1, 51)
  await first.stop()
  await broken.keepData?.()
  const second = await startNode()
  const lost = await publish(second, 51, 101)
  const { messages, gap } = await second.read({ since: lost[39] ?? NOWHERE }, ['#'])
  expect([messages.length, gap]).toEqual([10, undefined])
  await second.stop()
  await broken.restoreData?.()
  const third = await startNode()
  await publish(third, 101, 181)
  const fourth = await startNode()
  for (const broker of [third, fourth]) {
    for (const since of [kept[0], kept[48], kept[49], lost[0], lost[9], lost[48], lost[49]]) {
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
    await broker.stop()
  }
}

/** A log that has lost its end, or all of it, is never taken for the one before. */
export function lostEndSuite(kind: Kind): void {
  describe(`a log at ${kind.name}`, () => {
    // Symptom: a client resumed as `recovered`, though the log had lost what it had seen and had given the same offsets to
    // other messages. Cause: only a node that was alive could know what had stood there. The same with a position that the
    // log still had, before what it had lost: RabbitMQ and clusters of NATS do not tell that they were restarted.
    it(
      'whose data is put back with no node alive is a gap for everybody, from the first page on',
      async () => {
        const broken = await service(kind)
        for (let run = 1; run <= RESTORE_COUNT; run++) await loseEnd(kind, broken)
        console.info(`${kind.name}: data put back ${RESTORE_COUNT} times, a gap each time`)
      },
      RESTORE_COUNT * 180_000,
    )

    it('that is empty when a node comes, and then has its earlier data, is never taken for the other one', async () => {
      const broken = await service(kind)
      const startNode = nodesOf(kind, broken)
      const first = await startNode()
      const early = await publish(first, 1, 6)
      await first.stop()
      await broken.keepData?.()
      await broken.wipe?.()
      const second = await startNode()
      const late = await publish(second, 101, 110)
      const gapOf = async (broker: Broker, since: Position = NOWHERE) => (await broker.read({ since }, ['#'])).gap
      for (const since of early) expect(await gapOf(second, since)).toEqual(expect.any(String))
      await second.stop()
      await broken.restoreData?.()
      const third = await startNode()
      await publish(third, 6, 21)
      for (const since of late) expect(await gapOf(third, since)).toEqual(expect.any(String))
      const { gap, messages } = await third.read({ since: early[2] ?? NOWHERE }, ['#'])
      const texts = messages.map(({ payload }) => Buffer.from(payload).toString())
      if (gap === undefined) expect(texts).toEqual(Array.from({ length: 17 }, (_, index) => `${index + 4}`))
    }, 180_000)

    it('is whole after a restart that a node outlives, also on a node that starts then', async () => {
      const broken = await service(kind)
      const startNode = nodesOf(kind, broken)
      const living = await startNode()
      const [since = NOWHERE] = await publish(living, 1, 6)
      await broken.restart()
      await vi.waitFor(() => expect(living.statuses).toContain('down'), RECOVERY)
      await vi.waitFor(() => expect(living.statuses.at(-1)).toBe('up'), RECOVERY)
      const started = await startNode()
      await publish(living, 6, 9)
      for (const node of [living, started, await startNode()]) {
        const { gap, messages } = await node.read({ since }, ['#'])
        expect([gap, messages.length]).toEqual([undefined, 7])
      }
      expect([...living.gaps, ...started.gaps]).not.toContain('epoch-changed')
    }, 180_000)

    it('that comes back empty is told to a node that lives, and to those who come back to it', async () => {
      const broken = await service(kind)
      const node = await nodesOf(kind, broken)()
      const early = await publish(node, 1, 6)
      await broken.wipe?.()
      await vi.waitFor(() => expect([node.gaps.length > 0, node.statuses.at(-1)]).toEqual([true, 'up']), RECOVERY)
      await publish(node, 101, 110)
      for (const since of early) expect((await node.read({ since }, ['#'])).gap).toEqual(expect.any(String))
    }, 180_000)
  })
}
