import type {
  Link,
  LinkContext,
  LinkDriver,
  LinkEvents,
  LinkLog,
  LinkMessage,
  LogFollower,
} from '../../packages/server/src/adapters/brokers/remote/link.js'
import type { BrokerCapabilities, LogPlace, Position } from '../../packages/server/src/kernel/ports/index.js'
import { Network } from './network.js'

interface Entry {
  readonly message: LinkMessage
  readonly node: string
  readonly fingerprint: number
  readonly timeMs: number
}

const CAPABILITIES: BrokerCapabilities = {
  history: true,
  retained: false,
  ordered: true,
  sharedLog: true,
  confirms: true,
  queueGroups: false,
  durable: true,
  manyNodes: true,
}
/** Entries that are read in one go. */
const CHUNK = 4
/** A node that cannot say that the log is whole lets others come first, for so long. */
const VOUCHER_WAIT_MS = 1_000
const RETRY_MS = 100

/**
 * A broker with a log of one epoch after another, as Redis keeps it: it tells nodes that it was restarted, and a node must
 * say that the log is whole.
 */
export class ModelBroker {
  readonly entries: Entry[] = []
  readonly #ids = new Map<string, number>()
  readonly links = new Set<ModelLink>()
  #epochCount = 1
  beganAt = 0
  term = 1
  vouchedTerm = 1
  isUp = true
  /** Some node was given everything up to this offset. */
  givenUpTo = 0
  #fingerprint = 0
  /** Another epoch has begun. */
  onEpoch: () => void = () => undefined

  get epoch(): string {
    return `e${this.#epochCount}`
  }

  createDriver(): LinkDriver {
    return {
      linkVersion: 1,
      name: 'model',
      address: 'model',
      takesBundles: false,
      capabilities: CAPABILITIES,
      connect: async (context, events) => {
        await later()
        if (!this.isUp) throw new Error('the broker is away')
        const link = new ModelLink(this, context, events)
        this.links.add(link)
        return link
      },
    }
  }

  append(message: LinkMessage, node: string): void {
    const { messageId } = message
    this.#fingerprint = (this.#fingerprint + 7_919) % 2 ** 30
    this.entries.push({ message, node, fingerprint: this.#fingerprint, timeMs: Date.now() })
    if (messageId !== undefined) this.#ids.set(messageId, this.entries.length)
    for (const link of this.links) link.appended()
  }

  offsetOf(messageId: string | undefined): number | undefined {
    return messageId === undefined ? undefined : this.#ids.get(messageId)
  }

  /** Ends, and loses the last `lostCount` entries. */
  end(lostCount: number): void {
    this.isUp = false
    this.term++
    this.entries.length = Math.max(0, this.entries.length - lostCount)
    for (const [id, offset] of this.#ids) if (offset > this.entries.length) this.#ids.delete(id)
    for (const link of [...this.links]) link.lose('the broker has ended')
  }

  beginEpoch(): void {
    this.#epochCount++
    this.beganAt = this.entries.length
    this.givenUpTo = this.entries.length
    this.onEpoch()
    for (const link of [...this.links]) if (link.isFollowing) link.lose('another epoch')
  }
}

export class ModelLink implements Link, LinkLog {
  readonly log = this
  readonly #broker: ModelBroker
  readonly #context: LinkContext
  readonly #events: LinkEvents
  readonly #patterns = new Set<string>()
  readonly #out = new Ordered()
  readonly #in = new Ordered()
  #follower: LogFollower | undefined
  #read = 0
  #isReading = false
  #isOver = false
  #caughtUp: (() => void) | undefined

  constructor(broker: ModelBroker, context: LinkContext, events: LinkEvents) {
    this.#broker = broker
    this.#context = context
    this.#events = events
  }

  get isFollowing(): boolean {
    return this.#follower !== undefined
  }

  async bind(pattern: string): Promise<void> {
    await later()
    this.#patterns.add(pattern)
  }

  async unbind(pattern: string): Promise<void> {
    this.#patterns.delete(pattern)
  }

  publish(message: LinkMessage): void {
    const { sequence, messageId, payload, isLogged } = message
    const copy = { ...message, payload: payload.slice() }
    this.#out.later(() => {
      if (this.#isOver) return
      const broker = this.#broker
      if (!isLogged) {
        for (const link of broker.links) link.deliver(copy, this.#context.node)
        this.#in.later(() => this.#isOver || this.#events.confirmed(sequence, false))
        return
      }
      const offset = broker.offsetOf(messageId)
      const { epoch } = broker
      if (offset === undefined) broker.append(copy, this.#context.node)
      else this.#in.later(() => this.#isOver || this.#events.confirmed(sequence, false, { epoch, offset }))
    })
  }

  /** Of messages that are not logged. */
  deliver({ key, payload, isBinary, sequence, publisher, messageId, attributes }: LinkMessage, node: string): void {
    const source = { node, sequence, publisher }
    this.#in.later(() => {
      if (!this.#isOver) this.#events.deliver({ key, payload, isBinary, source, messageId, attributes })
    })
  }

  async follow(after: Position | undefined, follower: LogFollower): Promise<void> {
    const isContinued = await this.#open(after)
    const { epoch, beganAt } = this.#broker
    const offset = isContinued && after !== undefined ? after.offset : 0
    const fingerprint = isContinued && after !== undefined ? after.fingerprint : 0
    this.#read = offset
    this.#follower = follower
    follower.begins({ epoch, offset, fingerprint }, isContinued)
    follower.began(beganAt)
    const end = this.#broker.entries.length
    if (offset >= end) return
    await new Promise<void>((resolve) => {
      this.#caughtUp = resolve
      this.appended()
    })
  }

  async end(): Promise<LogPlace | undefined> {
    await later()
    const { epoch, entries } = this.#broker
    return { epoch, offset: entries.length }
  }

  risk = () => Promise.resolve(undefined)
  isMarked = () => Promise.resolve(true)
  unmark = () => Promise.resolve()
  begin = () => Promise.resolve()

  appended(): void {
    if (this.#follower === undefined || this.#isReading) return
    this.#isReading = true
    this.#in.later(() => this.#give())
  }

  async close(): Promise<void> {
    this.destroy()
  }

  destroy(): void {
    this.#isOver = true
    this.#broker.links.delete(this)
  }

  lose(reason: string): void {
    if (this.#isOver) return
    this.destroy()
    setTimeout(() => this.#events.lost(new Error(reason)), Network.current.latencyMs())
  }

  /** Returns whether the log goes on after this position. */
  async #open(after: Position | undefined): Promise<boolean> {
    const broker = this.#broker
    const fromMs = performance.now()
    for (;;) {
      await later()
      if (this.#isOver) throw new Error('the link is over')
      const isOfEpoch = after?.epoch === broker.epoch
      const offset = after?.offset ?? 0
      const isThere = offset === 0 || broker.entries[offset - 1]?.fingerprint === after?.fingerprint
      if (isOfEpoch && !isThere) broker.beginEpoch()
      else if (broker.vouchedTerm !== broker.term) {
        const knowsAll = isOfEpoch && offset >= broker.entries.length && offset >= broker.givenUpTo
        if (!knowsAll && performance.now() - fromMs < VOUCHER_WAIT_MS) {
          await new Promise((resolve) => {
            setTimeout(resolve, RETRY_MS)
          })
          continue
        }
        if (!knowsAll) broker.beginEpoch()
      }
      broker.vouchedTerm = broker.term
      return after?.epoch === broker.epoch
    }
  }

  #give(): void {
    this.#isReading = false
    const follower = this.#follower
    if (this.#isOver || follower === undefined) return
    const { entries } = this.#broker
    const end = Math.min(entries.length, this.#read + CHUNK)
    while (this.#read < end && !this.#isOver) {
      const entry = entries[this.#read++]
      if (entry === undefined) return
      const { message, node, fingerprint, timeMs } = entry
      const { key, payload, isBinary, sequence, publisher, messageId, attributes } = message
      const source = { node, sequence, publisher }
      const delivery = { key, payload, isBinary, source, messageId, attributes }
      this.#broker.givenUpTo = Math.max(this.#broker.givenUpTo, this.#read)
      follower.message({ ...delivery, offset: this.#read, fingerprint, timeMs })
    }
    if (this.#read < entries.length) this.appended()
    else {
      this.#caughtUp?.()
      this.#caughtUp = undefined
    }
  }
}

/** Now and then a link is slow: its node lags behind the others. */
const SLOW_SHARE = 0.3
const SLOW_FACTOR = 12

/** Calls that keep their order, each after some time. */
class Ordered {
  readonly #factor = Network.current.chance() < SLOW_SHARE ? SLOW_FACTOR : 1
  #lastMs = 0

  later(call: () => void): void {
    this.#lastMs = Math.max(this.#lastMs, performance.now() + this.#factor * Network.current.latencyMs())
    setTimeout(call, this.#lastMs - performance.now())
  }
}

async function later(): Promise<void> {
  await new Promise((resolve) => {
    setTimeout(resolve, Network.current.latencyMs())
  })
}
