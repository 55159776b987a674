import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { brokerOptions, historyOf, ListeningNode, messageIdOf, retaining } from 'webmq-conformance'
import { type Deferred, deferred } from '../../ports/deferred.js'
import type { HistoryOptions } from '../../ports/history-rules.js'
import { RemoteBroker } from './broker.js'
import type { Link, LinkDriver, LinkEvents, LinkMessage, LogFollower, LogPosition } from './link.js'

const LOGGED = historyOf('#=1000')

interface Entry {
  readonly text: string
  readonly node: string
  readonly sequence: number
}

/** A link to a log of texts. It answers to no publish by itself. */
class LogLink implements Link {
  readonly calls: string[] = []
  readonly sent: LinkMessage[] = []
  readonly events: LinkEvents
  readonly node: string
  readonly #log: Entry[]
  #follower: LogFollower | undefined
  /** What the next `follow` waits for. */
  gate: Deferred<void> | undefined
  #left = deferred()

  constructor(log: Entry[], events: LinkEvents, node: string) {
    this.#log = log
    this.events = events
    this.node = node
  }

  bind = (pattern: string) => this.#called(`bind ${pattern}`)
  unbind = (pattern: string) => this.#called(`unbind ${pattern}`)
  openLog = () => this.#called('open')
  close = () => Promise.resolve()
  destroy = () => undefined

  publish(message: LinkMessage): void {
    this.sent.push(message)
  }

  async follow(after: LogPosition | undefined, follower: LogFollower): Promise<void> {
    void this.#called(`follow ${after?.offset ?? 'all'}`)
    await Promise.race([this.gate?.promise, this.#left.promise])
    if (this.calls.at(-1)?.startsWith('follow') !== true) return
    this.#follower = follower
    const from = after?.offset ?? 0
    follower.begins({ epoch: 'e', offset: from }, after !== undefined)
    for (let at = from; at < this.#log.length; at++) this.#give(at)
  }

  unfollow(): void {
    void this.#called('unfollow')
    this.#follower = undefined
    this.#left.resolve()
    this.#left = deferred()
  }

  /** The log gets a message, of this node or another. */
  append(text: string, { node = 'other', sequence = this.#log.length + 1 }: Partial<Entry> = {}): void {
    this.#log.push({ text, node, sequence })
    if (this.#follower !== undefined) this.#give(this.#log.length - 1)
  }

  #give(at: number): void {
    const { text, node, sequence } = this.#log[at] as Entry
    const source = { node, sequence, publisher: undefined }
    const payload = Buffer.from(text)
    this.#follower?.message({ key: 'a', payload, isBinary: false, source, offset: at + 1, timeMs: Date.now() })
  }

  #called(call: string): Promise<void> {
    this.calls.push(call)
    return Promise.resolve()
  }
}

async function started(history: HistoryOptions = LOGGED, confirmsByLog = false) {
  const log: Entry[] = []
  const links: LogLink[] = []
  const texts: string[] = []
  const gaps: string[] = []
  let isReachable = true
  const driver: LinkDriver = {
    name: 'test',
    address: 'nowhere',
    takesBundles: false,
    confirmsByLog,
    capabilities: {
      history: true,
      retained: false,
      ordered: true,
      sharedLog: true,
      confirms: true,
      queueGroups: false,
      durable: true,
      manyNodes: true,
    },
    connect: async ({ node }, events) => {
      if (!isReachable) throw new Error('not reachable')
      const link = new LogLink(log, events, node)
      links.push(link)
      return link
    },
  }
  const options = brokerOptions({ brokerTimeoutMs: 300, brokerStartTimeoutMs: 1_000, ...history })
  const broker = new RemoteBroker(driver, { ...options, followsLog: 'on-demand' })
  const statuses: string[] = []
  const node = new ListeningNode(broker, {
    deliver: ({ payload }) => texts.push(Buffer.from(payload).toString()) > 0,
    status: (status) => statuses.push(status),
    gap: (reason, isAffected = () => true) => isAffected('a') && gaps.push(reason),
    refused: () => undefined,
  })
  await node.start()
  onTestFinished(() => broker.stop())
  return {
    broker,
    bind: (pattern: string) => node.bind(pattern),
    link: links[0] as LogLink,
    texts,
    gaps,
    /** Loses the newest link, and waits for the next one. */
    async relink(meanwhile: () => unknown = () => undefined) {
      isReachable = false
      links.at(-1)?.events.lost(new Error('cut'))
      await meanwhile()
      isReachable = true
      await vi.waitFor(() => expect(statuses.at(-1)).toBe('up'), 5_000)
      return links.at(-1) as LogLink
    },
  }
}

const publish = (broker: RemoteBroker, text: string, more: { readonly messageId?: string } = {}) =>
  Promise.resolve(broker.publish({ key: 'a', payload: Buffer.from(text), isBinary: false, ...more }))

async function readTexts(broker: RemoteBroker) {
  const { messages } = await broker.read({ last: 100 }, ['a'])
  return messages.map(({ payload }) => Buffer.from(payload).toString())
}

const POSITION = { epoch: 'e', offset: 7 }

describe('a RemoteBroker that follows its log on demand', () => {
  it('publishes without the log, with the position that the broker tells', async () => {
    const { broker, link } = await started()
    expect(link.calls).toEqual(['open'])
    const published = [publish(broker, 'x'), publish(broker, 'y')]
    expect(link.sent.map(({ isLogged }) => isLogged)).toEqual([true, true])
    link.events.confirmed(1, false, { position: POSITION, isDuplicate: false })
    link.events.confirmed(2, false, { position: POSITION, isDuplicate: true })
    expect(await Promise.all(published)).toEqual([
      { position: POSITION, isDuplicate: false },
      { position: POSITION, isDuplicate: true },
    ])
    expect(broker.position()).toBeUndefined()
    expect(() => broker.read({ last: 1 }, ['a'])).toThrow(expect.objectContaining({ code: 'E_BROKER_UNAVAILABLE' }))
  })

  it('sends again what a lost link has not confirmed, with its sequence and id', async () => {
    const { broker, link, relink } = await started()
    const published = [publish(broker, 'x', { messageId: messageIdOf('id') }), publish(broker, 'y')]
    link.events.confirmed(2, false)
    const next = await relink()
    expect(next.calls).toEqual(['open'])
    expect(next.sent).toEqual([link.sent[0]])
    next.events.confirmed(1, false, { position: POSITION, isDuplicate: true })
    expect(await Promise.all(published)).toEqual([{ position: POSITION, isDuplicate: true }, { isDuplicate: false }])
  })

  it('has the log from `follow` on, delivers only what comes later, and goes on over further links', async () => {
    const { broker, bind, link, texts, gaps, relink } = await started()
    await bind('a')
    for (const text of ['1', '2']) link.append(text)
    await Promise.all([broker.follow(), broker.follow()])
    expect(link.calls).toEqual(['open', 'bind a', 'bind $webmq.ephemeral', 'follow all'])
    expect(broker.position()).toEqual({ epoch: 'e', offset: 2 })
    link.append('3')
    const next = await relink(() => link.append('4'))
    expect(next.calls.at(-1)).toBe('follow 4')
    next.append('5')
    expect(texts).toEqual(['3', '4', '5'])
    expect(await readTexts(broker)).toEqual(['1', '2', '3', '4', '5'])
    expect(gaps).toEqual([])
  })

  it('forgets the log at `unfollow`, and begins anew at the next `follow`, on this link or another', async () => {
    const { broker, link, gaps, relink } = await started()
    link.append('1')
    await broker.follow()
    broker.unfollow()
    expect(link.calls.slice(-2)).toEqual(['unfollow', 'unbind $webmq.ephemeral'])
    expect(broker.position()).toBeUndefined()
    expect(broker.stats().log?.messageCount).toBe(0)
    await broker.follow()
    expect(link.calls.at(-1)).toBe('follow all')
    expect(await readTexts(broker)).toEqual(['1'])
    broker.unfollow()
    const next = await relink()
    expect(next.calls).toEqual(['open'])
    await broker.follow()
    expect(next.calls.at(-1)).toBe('follow all')
    expect(gaps).toEqual([])
  })

  it('ends a `follow` that is not complete at `unfollow`; a later one is complete only once it has the log', async () => {
    const { broker, link } = await started()
    link.append('1')
    link.gate = deferred()
    const first = broker.follow()
    await vi.waitFor(() => expect(link.calls.at(-1)).toBe('follow all'))
    broker.unfollow()
    await expect(first).rejects.toMatchObject({ code: 'E_BROKER_UNAVAILABLE' })
    const second = broker.follow()
    await vi.waitFor(() => expect(link.calls.filter((call) => call === 'follow all')).toHaveLength(2))
    expect(broker.position()).toBeUndefined()
    link.gate.resolve()
    await second
    expect(await readTexts(broker)).toEqual(['1'])
  })

  // The link followed the log twice: the second copy stayed empty.
  it('ends a `follow` at `unfollow` also before the link has begun', async () => {
    const { broker, link } = await started()
    link.append('1')
    const first = broker.follow()
    broker.unfollow()
    await expect(first).rejects.toMatchObject({ code: 'E_BROKER_UNAVAILABLE' })
    await broker.follow()
    const calls = link.calls.filter((call) => call.includes('follow'))
    for (const [at, call] of calls.entries())
      if (at > 0 && call === 'follow all') expect(calls[at - 1]).toBe('unfollow')
    expect(await readTexts(broker)).toEqual(['1'])
  })

  it('rejects a `follow` that takes too long, and goes on trying', async () => {
    const { broker, link, relink } = await started()
    link.append('1')
    const next = await relink(async () => {
      await expect(broker.follow()).rejects.toMatchObject({ code: 'E_BROKER_UNAVAILABLE' })
    })
    expect(next.calls.at(-1)).toBe('follow all')
    expect(await readTexts(broker)).toEqual(['1'])
  })

  it('follows no more when the broker refuses, and publishes on', async () => {
    const { broker, link } = await started()
    link.gate = deferred()
    const refused = broker.follow()
    await vi.waitFor(() => expect(link.calls.at(-1)).toBe('follow all'))
    link.gate.reject(new Error('not allowed'))
    await expect(refused).rejects.toMatchObject({ code: 'E_BROKER_UNAVAILABLE' })
    expect(link.calls.at(-2)).toBe('unfollow')
    const published = publish(broker, 'x')
    link.events.confirmed(1, false)
    expect(await published).toEqual({ isDuplicate: false })
    link.gate = undefined
    await broker.follow()
    expect(await readTexts(broker)).toEqual([])
  })

  it('waits for positions by the log only while it follows, if the broker tells none', async () => {
    const { broker, link } = await started(LOGGED, true)
    const before = publish(broker, 'before')
    link.events.confirmed(1, false)
    expect(await before).toEqual({ isDuplicate: false })
    await broker.follow()
    const during = publish(broker, 'during')
    const last = publish(broker, 'last')
    link.events.confirmed(3, true)
    expect(broker.stats().pendingCount).toBe(2)
    link.append('during', { node: link.node, sequence: 2 })
    expect(await during).toEqual({ position: { epoch: 'e', offset: 1 }, isDuplicate: false })
    broker.unfollow()
    expect(await last).toEqual({ isDuplicate: false })
    expect(broker.stats().pendingCount).toBe(0)
  })

  it('follows always if keys are retained: their limits and copies need the log', async () => {
    const { broker, link } = await started(retaining(LOGGED, 'state.#'))
    expect(link.calls).toEqual(['bind $webmq.ephemeral', 'follow all'])
    broker.unfollow()
    expect(broker.position()).toEqual({ epoch: 'e', offset: 0 })
  })
})
