import { afterEach, describe, expect, it, vi } from 'vitest'
import { WebMQError } from 'webmq-client/protocol'
import { historyOf, retaining } from 'webmq-conformance'
import { memoryOptions } from '../../../test/memory-options.js'
import type { Broker, BrokerSink, BrokerStatus, InboundMessage, OutboundMessage, Position } from '../../ports/broker.js'
import { deferred } from '../../ports/deferred.js'
import type { HistoryOptions } from '../../ports/history-rules.js'
import { partitionOfWords } from '../../ports/partition-of.js'
import { formatPosition, parsePosition } from '../../ports/position.js'
import { MemoryBroker } from '../memory/broker.js'
import { PartitionedBroker, type PartitionedBrokerOptions } from './broker.js'

const COUNT = 4
const IDLE_MS = 60_000
/** A first word of each partition. */
const WORDS = Array.from({ length: COUNT }, (_, partition) =>
  Array.from({ length: 100 }, (_, index) => `w${index}`).find((word) => partitionOfWords(word, COUNT) === partition),
) as string[]

/** An instance of an adapter: a memory broker, whose start and copy of the log the test holds back. */
class FakeInstance extends MemoryBroker {
  sink: BrokerSink | undefined
  startGate: Promise<void> | undefined
  followGate: Promise<void> | undefined
  isFollowing = false
  stopCount = 0
  readonly bound: string[] = []
  address: string | undefined

  override async start(sink: BrokerSink): Promise<void> {
    await this.startGate
    this.sink = sink
    await super.start(sink)
  }

  override bind(pattern: string): void {
    this.bound.push(pattern)
    super.bind(pattern)
  }

  async follow(): Promise<void> {
    await this.followGate
    this.isFollowing = true
  }

  unfollow(): void {
    this.isFollowing = false
  }

  setAddress(address: string): void {
    this.address = address
  }

  override async stop(): Promise<void> {
    this.stopCount++
    await super.stop()
  }
}

interface Started {
  readonly broker: PartitionedBroker
  readonly base: FakeInstance
  /** All that were made, by partition. */
  readonly made: FakeInstance[][]
  readonly messages: InboundMessage[]
  readonly statuses: BrokerStatus[]
  readonly gaps: { reason: string; isAffected(pattern: string): boolean }[]
  readonly errors: unknown[]
  /** The instance of a partition that was made last. */
  instance(partition: number): FakeInstance
}

const running: Broker[] = []
afterEach(async () => {
  vi.useRealTimers()
  await Promise.all(running.splice(0).map((broker) => broker.stop()))
})

async function start(
  options: Partial<PartitionedBrokerOptions> & { prepare?: (instance: FakeInstance, partition: number) => void } = {},
  history: HistoryOptions = historyOf('#=1000'),
): Promise<Started> {
  const made: FakeInstance[][] = WORDS.map(() => [])
  const [messages, statuses, gaps, errors]: [InboundMessage[], BrokerStatus[], Started['gaps'], unknown[]] = [
    [],
    [],
    [],
    [],
  ]
  const create = (rules: HistoryOptions) => new FakeInstance({ ...memoryOptions(), ...rules })
  const base = create(historyOf())
  const broker = await PartitionedBroker.create({
    count: COUNT,
    words: 1,
    history: history.history,
    brokerTimeoutMs: 5_000,
    brokerMaxPendingBytes: 100_000,
    base,
    createPartition: (partition) => {
      const instance = create(history)
      made[partition]?.push(instance)
      options.prepare?.(instance, partition)
      return instance
    },
    onError: (error) => errors.push(error),
    ...options,
  })
  running.push(broker)
  await broker.start({
    deliver: (message) => messages.push({ ...message, payload: message.payload.slice() }) > 0,
    status: (status) => statuses.push(status),
    gap: (reason, isAffected = () => true) => gaps.push({ reason, isAffected }),
    refused: () => undefined,
  })
  const instance = (partition: number) => made[partition]?.at(-1) as FakeInstance
  return { broker, base, made, messages, statuses, gaps, errors, instance }
}

function text(key: string, body: string): OutboundMessage {
  return { key, payload: Buffer.from(body), isBinary: false }
}

const bodyOf = ({ payload }: InboundMessage) => Buffer.from(payload).toString()

async function read(broker: Broker, ...[range, patterns = ['#']]: [Parameters<Broker['read']>[0], string[]?]) {
  const { messages, ...result } = await broker.read(range, patterns)
  return { ...result, bodies: messages.map(bodyOf), positions: messages.map(({ position }) => position) }
}

describe('a log with partitions', () => {
  it('starts the partitions that listeners need, and the base for what is not logged', async () => {
    const { broker, base, made, instance } = await start({}, historyOf('w0.#=1000', 'w1.#=1000'))
    const [logged] = [partitionOfWords('w0', COUNT)]
    await broker.bind('w0.a')
    expect(instance(logged).isFollowing).toBe(true)
    expect(base.bound).toEqual([])
    await broker.bind('other.#')
    expect(base.bound).toEqual(['other.#'])
    expect(made.flat().filter(({ isFollowing }) => isFollowing)).toHaveLength(1)
    // Their log brings everything, and the node knows who listens.
    expect(made.flat().flatMap(({ bound }) => bound)).toEqual([])
  })

  it('delivers with the partition in the position, and answers with the same one', async () => {
    const { broker, messages } = await start()
    await broker.bind('#')
    const answers = [] as (Position | undefined)[]
    for (const word of WORDS) answers.push((await broker.publish(text(`${word}.x`, word))).position)
    expect(messages.map(bodyOf)).toEqual(WORDS)
    expect(messages.map(({ position }) => position)).toEqual(answers)
    expect(answers.map((position) => formatPosition(position as Position))).toEqual(
      WORDS.map((_, partition) => expect.stringMatching(new RegExp(`^${partition}\\.[\\w-]{6}:1$`))),
    )
  })

  it('publishes without a copy of the log, and in order while the partition starts', async () => {
    const gate = deferred()
    const { broker, instance, messages } = await start({
      prepare: (fake, partition) => {
        if (partition === 1) fake.startGate = gate.promise
      },
    })
    const payload = Buffer.from('0')
    const first = broker.publish({ key: WORDS[1] as string, payload, isBinary: false })
    payload.fill('x')
    const others = ['1', '2'].map((body) => broker.publish(text(WORDS[1] as string, body)))
    const batch = broker.publishBatch([
      text(WORDS[1] as string, '3'),
      text(WORDS[2] as string, 'else'),
      text(WORDS[1] as string, '4'),
    ])
    gate.resolve()
    const positions = (await Promise.all([first, ...others])).map(({ position }) => position?.offset)
    expect(positions).toEqual([1, 2, 3])
    expect((await batch).map(({ position }) => position?.offset)).toEqual([4, 1, 5])
    expect(instance(1).isFollowing).toBe(false)
    expect(messages.map(bodyOf)).toEqual(expect.arrayContaining(['0', '1', '2', '3', '4']))
    expect((await read(broker, { last: 10 }, [WORDS[1] as string])).bodies).toEqual(['0', '1', '2', '3', '4'])
    expect(instance(1).isFollowing).toBe(true)
  })

  it('refuses what waits for a partition longer, or in more bytes, than it may', async () => {
    vi.useFakeTimers()
    const { broker } = await start({
      prepare: (fake, partition) => {
        if (partition === 1) fake.startGate = deferred().promise
      },
    })
    const key = WORDS[1] as string
    const waiting = broker.publish({ key, payload: new Uint8Array(90_000), isBinary: true })
    expect(() => broker.publish({ key, payload: new Uint8Array(10_000), isBinary: true })).toThrow(
      expect.objectContaining({ code: 'E_BROKER_UNAVAILABLE' }),
    )
    const refused = [waiting, broker.bind(key), broker.read({ last: 1 }, [key])].map(async (call) =>
      expect(await Promise.resolve(call).catch((error: WebMQError) => error.code)).toBe('E_BROKER_UNAVAILABLE'),
    )
    await vi.advanceTimersByTimeAsync(5_000)
    await Promise.all(refused)
    // What was refused counts no more.
    void Promise.resolve(broker.publish({ key, payload: new Uint8Array(90_000), isBinary: true })).catch(
      () => undefined,
    )
  })

  it('takes a bind back when one of its partitions does not start', async () => {
    const { broker, base, instance, errors } = await start(
      {
        prepare: (fake, partition) => {
          if (partition === 2) fake.startGate = Promise.reject(new WebMQError('E_BROKER_UNAVAILABLE'))
          fake.startGate?.catch(() => undefined)
        },
      },
      historyOf(...WORDS.map((word) => `${word}.#=10`)),
    )
    await expect(broker.bind('#')).rejects.toMatchObject({ code: 'E_BROKER_UNAVAILABLE' })
    expect(base.bound).toEqual(['#'])
    expect(errors).toHaveLength(1)
    expect(instance(1).isFollowing).toBe(true)
    await expect(broker.bind(`${WORDS[1]}.a`)).resolves.toBeUndefined()
  })

  it('stops a partition that nobody has needed for a while, and begins anew with the next listener', async () => {
    vi.useFakeTimers()
    const { broker, made, instance, messages } = await start()
    const key = WORDS[3] as string
    await broker.bind(key)
    await broker.publish(text(key, 'one'))
    await vi.advanceTimersByTimeAsync(3 * IDLE_MS)
    expect(instance(3).isFollowing).toBe(true)
    await broker.unbind(key)
    await broker.publish(text(key, 'two'))
    // Published, and not read: it goes on without a copy.
    await vi.advanceTimersByTimeAsync(IDLE_MS)
    await broker.publish(text(key, 'three'))
    await vi.advanceTimersByTimeAsync(IDLE_MS)
    expect(instance(3)).toMatchObject({ isFollowing: false, stopCount: 0 })
    await vi.advanceTimersByTimeAsync(2 * IDLE_MS)
    expect(instance(3).stopCount).toBe(1)
    expect(broker.stats().acceptedCount).toBe(3)
    await broker.bind(key)
    expect(made[3]).toHaveLength(2)
    instance(3).sink?.deliver({ ...text(key, 'four'), position: { epoch: 'e', offset: 9 } })
    made[3]?.[0]?.sink?.deliver({ ...text(key, 'of the old instance'), position: { epoch: 'e', offset: 9 } })
    expect(messages.map(bodyOf)).toEqual(['one', 'two', 'three', 'four'])
    expect(broker.stats().acceptedCount).toBe(3)
  })

  it('waits for the copy of the log before a listen is live or a read is answered', async () => {
    const gate = deferred()
    const { broker, instance } = await start({
      prepare: (fake, partition) => {
        if (partition === 1) fake.followGate = gate.promise
      },
    })
    const key = WORDS[1] as string
    let done = 0
    const calls = [broker.bind(key), broker.read({ last: 1 }, [key])].map(async (call) => {
      await call
      done++
    })
    await vi.waitFor(() => expect(instance(1)?.sink).toBeDefined())
    expect(done).toBe(0)
    expect(broker.position([key])).toBeUndefined()
    gate.resolve()
    await Promise.all(calls)
    expect(broker.position([key])).toMatchObject({ epoch: expect.stringMatching(/^1\./), offset: 0 })
  })

  it('tells a gap of a partition to the patterns that have a part in it', async () => {
    const { broker, instance, gaps } = await start()
    await broker.bind('#')
    instance(2).sink?.gap('broker-lost')
    const [gap] = gaps
    expect(gap?.reason).toBe('broker-lost')
    expect(['#', `${WORDS[2]}.a`, '*.a'].every((pattern) => gap?.isAffected(pattern))).toBe(true)
    expect([`${WORDS[1]}.a`, '$webmq.x'].some((pattern) => gap?.isAffected(pattern))).toBe(false)
  })

  it('tells a gap of the base to the patterns that have a part in it', async () => {
    const { base, gaps } = await start({}, historyOf(`${WORDS[2]}.#=10`))
    base.sink?.gap('broker-lost')
    expect(['#', 'other', '$webmq.x'].every((pattern) => gaps[0]?.isAffected(pattern))).toBe(true)
    expect(gaps[0]?.isAffected(`${WORDS[2]}.a`)).toBe(false)
  })

  it('asks an instance about its part of a pattern, which is logged', async () => {
    const { broker, instance, gaps } = await start({}, historyOf(`${WORDS[2]}.#=10`))
    await broker.bind('#')
    instance(2).sink?.gap('broker-lost', (pattern) => pattern === '#')
    expect(gaps[0]?.isAffected('#')).toBe(false)
  })

  it('is as well as the worst of what runs', async () => {
    const { broker, base, instance, statuses } = await start()
    expect(statuses).toEqual(['up'])
    await broker.bind(WORDS[1] as string)
    instance(1).sink?.status('down', new Error('gone'))
    base.sink?.status('blocked')
    instance(1).sink?.status('up')
    base.sink?.status('up')
    expect(statuses).toEqual(['up', 'down', 'blocked', 'up'])
  })

  it('passes another password on, also to partitions that start later', async () => {
    const { broker, base, instance } = await start()
    broker.setAddress('redis://user:new@host')
    await broker.bind(WORDS[3] as string)
    expect([base.address, instance(0).address, instance(3).address]).toEqual(Array(3).fill('redis://user:new@host'))
  })

  it('refuses every call after it has stopped, and stops everything', async () => {
    const { broker, base, made } = await start()
    await broker.bind('#')
    await broker.stop()
    expect([base, ...made.flat()].map(({ stopCount }) => stopCount)).toEqual(Array(5).fill(1))
    expect(() => broker.publish(text(WORDS[0] as string, 'x'))).toThrow(
      expect.objectContaining({ code: 'E_BROKER_UNAVAILABLE' }),
    )
  })
})

describe('a read over several partitions', () => {
  /** Publishes 0 to count - 1, by turns to all partitions, each in a millisecond of its own. */
  async function filled(count: number, options: Parameters<typeof start>[0] = {}) {
    vi.useFakeTimers()
    const started = await start(options)
    const { broker } = started
    const before = (await read(broker, { last: 0 })).position
    for (let index = 0; index < count; index++) {
      await vi.advanceTimersByTimeAsync(1)
      await broker.publish(text(`${WORDS[index % COUNT]}.x`, `${index}`))
    }
    return { ...started, before }
  }
  const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `${from + index}`)

  it('joins the positions, and the messages by their times', async () => {
    const { broker, before } = await filled(10)
    const all = await read(broker, { since: before })
    expect(all).toMatchObject({ bodies: numbers(0, 10), isPartial: false })
    expect(all).not.toHaveProperty('gap')
    expect(formatPosition(all.position).split(',')).toHaveLength(COUNT)
    expect(all.position).toEqual(broker.position())
    expect(await read(broker, { since: all.position })).toMatchObject({ bodies: [], position: all.position })
    expect((await read(broker, { last: 3 })).bodies).toEqual(['7', '8', '9'])
    expect((await read(broker, { last: 0 })).bodies).toEqual([])
    expect((await read(broker, { rewindMs: 3 })).bodies).toEqual(['6', '7', '8', '9'])
  })

  it.each([1, 3, 4, 7, 100])('comes in pages of %i, each message once', async (limit) => {
    const { broker, before } = await filled(30)
    // One partition has far more than the others.
    for (let index = 30; index < 50; index++) await broker.publish(text(`${WORDS[2]}.x`, `${index}`))
    const found: string[] = []
    let since = before
    for (let pages = 0; pages < 200; pages++) {
      const page = await read(broker, { since, limit })
      expect(page).not.toHaveProperty('gap')
      expect(page.bodies.length).toBeLessThanOrEqual(limit)
      // As clients send it back.
      since = parsePosition(formatPosition(page.position))
      found.push(...page.bodies)
      if (!page.isPartial) break
      expect(page.bodies.length).toBeGreaterThan(0)
    }
    expect(found.map(Number).sort((a, b) => a - b)).toEqual(numbers(0, 50).map(Number))
  })

  it('fills a page from the partitions that have more', async () => {
    const { broker, before } = await filled(4)
    for (let index = 4; index < 100; index++) await broker.publish(text(`${WORDS[1]}.x`, `${index}`))
    expect((await read(broker, { since: before, limit: 80 })).bodies).toHaveLength(80)
  })

  it('goes on with the last N that are more than a page', async () => {
    const { broker } = await filled(20)
    const page = await read(broker, { last: 12, limit: 5 })
    expect(page).toMatchObject({ isPartial: true })
    expect(page.bodies).toHaveLength(5)
    const rest = await read(broker, { since: page.position })
    expect([...page.bodies, ...rest.bodies]).toEqual(expect.arrayContaining(numbers(8, 20)))
  })

  it('says gap for a position that has no place in one of them, and replays nothing of that one', async () => {
    const { broker, before } = await filled(8)
    const { others: [second] = [] } = before
    expect(await read(broker, { since: second as Position })).toMatchObject({
      bodies: ['1', '5'],
      gap: 'epoch-changed',
    })
    // A place too many does no harm.
    expect(await read(broker, { since: before }, [`${WORDS[1]}.#`])).toMatchObject({ bodies: ['1', '5'] })
    expect(await read(broker, { since: before }, [`${WORDS[1]}.#`])).not.toHaveProperty('gap')
  })

  it('says gap for a position of a log without partitions, or with another number of them', async () => {
    const { broker } = await filled(8)
    const foreign = { epoch: 'abcdef', offset: 3 }
    for (const patterns of [['#'], [`${WORDS[1]}.x`]])
      expect((await read(broker, { since: foreign }, patterns)).gap).toBe('epoch-changed')
    expect((await read(broker, { since: { epoch: '9.abcdef', offset: 3 } })).gap).toBe('epoch-changed')
    expect((await read(broker, { before: foreign, last: 3 }, [`${WORDS[1]}.x`])).gap).toBe('epoch-changed')
  })

  it('refuses a place that its partition has not given', async () => {
    const { broker } = await filled(4)
    const { epoch, offset, others = [] } = (await read(broker, { last: 0 })).position
    await expect(read(broker, { since: { epoch, offset: offset + 9, others } })).rejects.toMatchObject({
      code: 'E_POSITION_INVALID',
    })
  })

  it('says that a key which is not logged has no history, and starts nothing for it', async () => {
    const { broker, made } = await start({}, historyOf(`${WORDS[1]}.#=10`))
    expect(await read(broker, { last: 3 }, ['other'])).toMatchObject({ bodies: [], gap: 'no-history' })
    expect(made.flat().filter(({ isFollowing }) => isFollowing)).toEqual([])
    expect(() => broker.read({ isState: true }, ['other'])).toThrow(expect.objectContaining({ code: 'E_UNSUPPORTED' }))
  })

  it('gives the state of all partitions', async () => {
    const { broker } = await start({}, retaining(historyOf('#=1000'), '#'))
    for (const body of ['old', 'new']) for (const word of WORDS) await broker.publish(text(`${word}.x`, body))
    const { messages, position } = await broker.read({ isState: true }, ['#'])
    expect(messages.map(({ key }) => key)).toEqual(WORDS.map((word) => `${word}.x`))
    expect(messages.map(bodyOf)).toEqual(Array(COUNT).fill('new'))
    await broker.publish(text(`${WORDS[2]}.x`, 'newest'))
    expect((await broker.read({ isState: true, since: position }, ['#'])).messages.map(bodyOf)).toEqual(['newest'])
  })
})
