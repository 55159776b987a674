import { cpus } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BackendSample } from '../../backends.js'
import type { Load } from '../../generator/load.js'
import { Interrupt } from '../../interrupt.js'
import { nowUs } from '../../measure/clock.js'
import { drain } from '../../measure/drain.js'
import { machineCpuSeconds } from '../../measure/machine.js'
import { stepMsOf } from '../../measure/over-time.js'
import type { ClientsConfig } from '../../results/clients-report.js'
import type { ScenarioContext } from '../../scenario.js'
import type { ClientsObservation, WindowMoment } from './result.js'

/** The traffic has ended when nothing new arrives for this long. */
const DRAIN_QUIET_MS = 3_000
/** The drain is abandoned after this many times the duration, but never before it could have ended. */
const DRAIN_LIMIT_FACTOR = 3
const MIN_DRAIN_LIMIT_MS = 2 * DRAIN_QUIET_MS
/** Delay of the first message, so that every thread gets the order in time. */
const BEGIN_LEAD_US = 250_000
const POLL_MS = 100

export type ClientsTimes = Pick<ClientsConfig, 'clients' | 'warmup' | 'duration'>

/** What can be seen of the servers; nothing, when they are not the run's own. */
export interface ServerView {
  readonly ports: readonly number[]
  sample(): Promise<BackendSample[]>
  /** CPU time of all of them so far, without asking them; `null`: not known. */
  cpuSeconds(): number | null
  /** `null`: not known. */
  brokerCpuSeconds(): number | null
}

/** The course of one run, from connecting to the counts. */
export class ClientsRun {
  readonly #config: ClientsTimes
  readonly #servers: ServerView
  readonly #load: Load
  readonly #progress: ScenarioContext['progress']
  readonly #signal: AbortSignal
  readonly #interrupt: Interrupt
  readonly #moments: WindowMoment[] = []

  /** @param signal Ends the run without a result. @param interrupt Ends the window, once it has begun. */
  constructor(
    config: ClientsTimes,
    servers: ServerView,
    load: Load,
    progress: ScenarioContext['progress'],
    signal: AbortSignal,
    interrupt = new Interrupt(signal),
  ) {
    this.#config = config
    this.#servers = servers
    this.#load = load
    this.#progress = progress
    this.#signal = signal
    this.#interrupt = interrupt
  }

  async observe(): Promise<ClientsObservation> {
    await this.#connect()
    const startUs = nowUs() + BEGIN_LEAD_US + this.#config.warmup * 1_000_000
    const window = { startUs, endUs: startUs + this.#config.duration * 1_000_000 }
    await this.#load.begin(window)

    this.#progress.phase('warming up')
    await this.#watch(window.startUs - this.#config.warmup * 1_000_000, window.startUs)
    this.#interrupt.hold()
    const start = await this.#sample()
    this.#progress.phase('publishing')
    await this.#watch(window.startUs, window.endUs, async () => await this.#look())
    const endUs = Math.min(nowUs(), window.endUs)
    const end = await this.#sample()
    const isInterrupted = this.#interrupt.isRequested
    const hasDrainTimedOut = !isInterrupted && (await this.#drain())
    const drained = await this.#sample()
    return {
      loads: await this.#load.finish(),
      windowEndUs: endUs,
      windowSeconds: (endUs - window.startUs) / 1_000_000,
      isInterrupted,
      hasDrainTimedOut,
      moments: this.#moments,
      ports: this.#servers.ports,
      samples: { start: start.servers, end: end.servers, drained: drained.servers },
      brokerCpuSeconds: less(drained.broker, start.broker),
      generatorCpuSeconds: drained.generator - start.generator,
      windowCpu: {
        cores: cpus().length,
        machine: end.machine - start.machine,
        generator: end.generator - start.generator,
        broker: less(end.broker, start.broker),
      },
    }
  }

  /** Processor seconds of each part so far. */
  async #sample() {
    const [generator, servers] = await Promise.all([this.#load.cpuSeconds(), this.#servers.sample()])
    return { generator, servers, broker: this.#servers.brokerCpuSeconds(), machine: machineCpuSeconds() }
  }

  /** Notes what has been counted and used up to now. */
  async #look(): Promise<void> {
    const generator = await this.#load.cpuSeconds()
    const { publishedCount: published, deliveredCount: delivered } = this.#load.totals
    const [servers, broker] = [this.#servers.cpuSeconds(), this.#servers.brokerCpuSeconds()]
    const counts = { published, delivered, servers, generator, broker, machine: machineCpuSeconds() }
    this.#moments.push({ atMs: nowUs() / 1_000, counts })
  }

  async #connect(): Promise<void> {
    this.#progress.phase('connecting')
    let isReady = false
    const ready = this.#load.ready().then(() => {
      isReady = true
    })
    while (!isReady) {
      await Promise.race([ready, this.#sleep(POLL_MS)])
      const { connectedCount } = this.#load.totals
      this.#progress.update(
        connectedCount / this.#config.clients,
        `${connectedCount} of ${this.#config.clients} clients`,
      )
    }
  }

  /** Shows progress until `untilUs`. @param look Called at the start and after each step. */
  async #watch(sinceUs: number, untilUs: number, look?: () => Promise<void>): Promise<void> {
    const stepUs = stepMsOf((untilUs - sinceUs) / 1_000) * 1_000
    let lookUs = sinceUs
    for (let leftUs = untilUs - nowUs(); leftUs > 0 && !this.#interrupt.isRequested; leftUs = untilUs - nowUs()) {
      await this.#sleep(Math.min(POLL_MS, Math.ceil(leftUs / 1_000)))
      const elapsedUs = Math.max(0, nowUs() - sinceUs)
      const { publishedCount, deliveredCount } = this.#load.totals
      const seconds = `${(elapsedUs / 1_000_000).toFixed(0)} of ${((untilUs - sinceUs) / 1_000_000).toFixed(0)} s`
      const counts = `${publishedCount.toLocaleString('en')} published, ${deliveredCount.toLocaleString('en')} delivered`
      this.#progress.update(elapsedUs / (untilUs - sinceUs), `${seconds}, ${counts}`)
      if (nowUs() < lookUs) continue
      await look?.()
      lookUs += stepUs
    }
  }

  /** Waits for messages under way; tells whether the wait was abandoned. */
  async #drain(): Promise<boolean> {
    this.#progress.phase('draining')
    const startMs = nowUs() / 1_000
    const limitMs = Math.max(MIN_DRAIN_LIMIT_MS, DRAIN_LIMIT_FACTOR * this.#config.duration * 1_000)
    // Unsent messages of a late generator keep the traffic going.
    while (!this.#load.totals.isSendingDone && nowUs() / 1_000 - startMs < limitMs) await this.#sleep(POLL_MS)
    const { hasTimedOut } = await drain({
      arrivedCount: () => this.#load.totals.arrivedCount,
      quietMs: DRAIN_QUIET_MS,
      limitMs,
      pollMs: POLL_MS,
      now: () => nowUs() / 1_000,
      sleep: async (ms) => {
        await this.#sleep(ms)
        this.#progress.update(1, `${this.#load.totals.deliveredCount.toLocaleString('en')} delivered`)
      },
    })
    return hasTimedOut || !this.#load.totals.isSendingDone
  }

  async #sleep(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#signal })
  }
}

/** `null` when one is not known. */
function less(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a - b
}
