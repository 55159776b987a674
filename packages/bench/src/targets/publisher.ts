import type { RecordableHistogram } from 'node:perf_hooks'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import type { MicrosecondSummary } from '../loadgen/events.js'
import { nowUs } from '../measure/clock.js'
import { createLatencyHistogram, recordUs } from '../measure/latency-histogram.js'
import { Pacer } from '../measure/pacer.js'
import { DeliveredCount } from './delivered-count.js'
import type { KeysPublished, Published, TargetCommand } from './messages.js'
import type { TargetServer } from './target-server.js'
import { FIRST_SEQ, TickWriter } from './tick-writer.js'

type Flood = Extract<TargetCommand, { cmd: 'publish-flood' }>
type Relayed = Extract<TargetCommand, { cmd: 'publish-relayed' }>
type Paced = Extract<TargetCommand, { cmd: 'publish-paced' }>
type Keys = Extract<TargetCommand, { cmd: 'publish-keys' }>

const DEFAULT_BATCH = 64
/** Pause before checking an overfull server again, because each check costs its CPU. */
const BACKOFF_MS = 1
const MAX_DRAIN_US = 30_000_000
/** A paced load that takes this many times its duration is abandoned; the count shows how far it came. */
const GIVE_UP_FACTOR = 3
const KEYS_PER_TURN = 1_000
/** At shorter intervals a turn of the event loop carries several messages, so that waking is not the load. */
const MIN_INTERVAL_US = 1_000
/** The pacer's thread has started by then. */
const LEAD_US = 100_000

/** Publishes in a target's process, like an application in it. */
export class Publisher {
  readonly #server: TargetServer
  #nextSeq = FIRST_SEQ

  constructor(server: TargetServer) {
    this.#server = server
  }

  async flood({ durationMs, payloadBytes, batch = DEFAULT_BATCH }: Flood): Promise<Published> {
    const startUs = nowUs()
    const endUs = startUs + durationMs * 1_000
    const writers = Array.from({ length: batch }, () => new TickWriter(payloadBytes, startUs))
    const firstSeq = this.#nextSeq
    for (let atUs = startUs; atUs < endUs; atUs = nowUs()) {
      if (this.#isFull()) {
        await sleep(BACKOFF_MS)
        continue
      }
      await this.#publishAll(writers, atUs)
      await turn()
    }
    return await this.#published(firstSeq, startUs)
  }

  async relayed({ durationMs, payloadBytes, batch, maxInFlight }: Relayed): Promise<Published> {
    const delivered = new DeliveredCount()
    const startUs = nowUs()
    const endUs = startUs + durationMs * 1_000
    const writers = Array.from({ length: batch }, () => new TickWriter(payloadBytes, startUs))
    const firstSeq = this.#nextSeq
    const inFlight = () => this.#nextSeq - FIRST_SEQ - delivered.look()
    let unacceptedCount = 0
    for (let atUs = startUs; atUs < endUs; atUs = nowUs()) {
      if (inFlight() + batch > maxInFlight) {
        await sleep(BACKOFF_MS)
        continue
      }
      // Not awaited one by one: a round trip to the broker per batch would be the limit. Delivered messages were
      // accepted.
      unacceptedCount++
      void this.#publishAll(writers, atUs).then(() => unacceptedCount--)
      await turn()
    }
    const durationUs = nowUs() - startUs
    while ((unacceptedCount > 0 || inFlight() > 0) && nowUs() - startUs - durationUs < MAX_DRAIN_US)
      await sleep(BACKOFF_MS)
    return this.#answer(firstSeq, startUs, durationUs)
  }

  async paced(paced: Paced): Promise<Published> {
    const { perSecond, durationMs, payloadBytes, isThrottled = true } = paced
    const count = Math.max(1, Math.round((perSecond * durationMs) / 1_000))
    const intervalUs = 1_000_000 / perSecond
    const firstSeq = this.#nextSeq
    const late = createLatencyHistogram()
    const startUs = nowUs() + LEAD_US
    const pacer = new Pacer({ startUs, periodUs: Math.max(MIN_INTERVAL_US, intervalUs), phasesUs: [0] })
    await pacer.next()
    const giveUpUs = startUs + durationMs * 1_000 * GIVE_UP_FACTOR
    const publish = this.#pacedBy(paced, new TickWriter(payloadBytes, startUs))
    let published = 0
    while (published < count && nowUs() < giveUpUs) {
      if (isThrottled && this.#isFull()) {
        await sleep(BACKOFF_MS)
        continue
      }
      const atUs = nowUs()
      let accepted: unknown
      while (published < count) {
        const intendedUs = startUs + published * intervalUs
        if (intendedUs > atUs) break
        accepted = publish(this.#nextSeq++, intendedUs)
        recordUs(late, atUs - intendedUs)
        published++
      }
      if (isThrottled) await accepted
      if (published < count) await pacer.next()
    }
    pacer.stop()
    return { ...(await this.#published(firstSeq, startUs, isThrottled)), lateUs: summaryOf(late) }
  }

  /** Runs in one go, with an occasional turn of the event loop: it measures CPU time, not the rate. */
  async keys({ count, distinctKeys }: Keys): Promise<KeysPublished> {
    const { publishTo } = this.#server
    if (publishTo === undefined) throw new Error('this target has no patterns')
    const payload = Buffer.from('{}')
    const keys = Array.from({ length: distinctKeys }, (_, index) => `bench.k${index}.silent.tick`)
    // A first turn, not measured, warms compilers and caches.
    for (let index = 0; index < Math.min(count, KEYS_PER_TURN); index++)
      publishTo(keys[index % distinctKeys] ?? '', payload)
    await turn()
    const startUs = nowUs()
    const start = process.cpuUsage()
    for (let index = 0; index < count; index++) {
      publishTo(keys[index % distinctKeys] ?? '', payload)
      if (index % KEYS_PER_TURN === 0) await turn()
    }
    const { user, system } = process.cpuUsage(start)
    return { event: 'keys-published', count, durationUs: nowUs() - startUs, cpuUs: user + system }
  }

  /** How one message of a paced load is published. */
  #pacedBy({ key, keyCount, isStream }: Paced, writer: TickWriter): (seq: number, timeUs: number) => unknown {
    const server = this.#server
    if (keyCount === undefined) return (seq, timeUs) => server.publish(writer, seq, timeUs, key)
    const keys = Array.from({ length: keyCount }, (_, index) => `bench.room.${index}`)
    if (isStream !== true) {
      return (seq, timeUs) => Promise.all(keys.map((key) => server.publish(writer, seq, timeUs, key)))
    }
    // One after the other: a writer merges what it is given while it waits, and readers would miss the number of the second.
    let last: Promise<unknown> = Promise.resolve()
    return (seq, timeUs) => {
      last = last.then(() => Promise.all(keys.map((key) => server.append?.(writer, seq, timeUs, key))))
      return last
    }
  }

  async #publishAll(writers: readonly TickWriter[], timeUs: number): Promise<void> {
    const firstSeq = this.#nextSeq
    this.#nextSeq += writers.length
    if (this.#server.publishBatch !== undefined) {
      await this.#server.publishBatch(writers, firstSeq, timeUs)
      return
    }
    // Not awaited: the check of waiting bytes comes before the next turn.
    for (const [place, writer] of writers.entries()) void this.#server.publish(writer, firstSeq + place, timeUs)
  }

  #isFull(): boolean {
    const { maxWaitingBytes } = this.#server
    return maxWaitingBytes !== undefined && this.#server.waitingBytes() > maxWaitingBytes()
  }

  /** @param isDrained Whether to wait until nothing waits in the server. */
  async #published(firstSeq: number, startUs: number, isDrained = true): Promise<Published> {
    const endUs = nowUs()
    while (isDrained && this.#server.waitingBytes() > 0 && nowUs() - endUs < MAX_DRAIN_US) await sleep(BACKOFF_MS)
    return this.#answer(firstSeq, startUs, endUs - startUs)
  }

  #answer(firstSeq: number, startUs: number, durationUs: number): Published {
    const lastSeq = this.#nextSeq - 1
    return {
      event: 'published',
      count: lastSeq - firstSeq + 1,
      durationUs,
      drainedUs: nowUs() - startUs,
      firstSeq,
      lastSeq,
    }
  }
}

function summaryOf(histogram: RecordableHistogram): MicrosecondSummary | null {
  if (histogram.count === 0) return null
  const at = (percentile: number) => histogram.percentile(percentile)
  return {
    count: histogram.count,
    mean: histogram.mean,
    min: histogram.min,
    p50: at(50),
    p90: at(90),
    p95: at(95),
    p99: at(99),
    p999: at(99.9),
    p9999: at(99.99),
    max: histogram.max,
  }
}
