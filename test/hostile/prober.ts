import { get } from 'node:http'
import type { RecordableHistogram } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { nowUs } from '../../packages/bench/src/measure/clock.js'
import { EventLoopMeter } from '../../packages/bench/src/measure/event-loop-meter.js'
import {
  createLatencyHistogram,
  recordUs,
  summarizeLatency,
} from '../../packages/bench/src/measure/latency-histogram.js'
import type { ProbeCommand, ProbeConnectCommand, Probed } from './messages.js'
import { Publisher } from './publisher.js'
import { RawConnection } from './raw-connection.js'
import { Tally } from './tally.js'

/** Interval of each pinging client. */
const PING_INTERVAL_MS = 250
const HEALTH_INTERVAL_MS = 100
const HEALTH_TIMEOUT_MS = 2_000
/** Step of the schedule; a time is that of the write, not of the schedule. */
const TICK_MS = 2
/** Answers that come later than this after the window were not given. */
const MAX_WAIT_MS = 10_000
const WAIT_POLL_MS = 20

interface Pinger {
  readonly connection: RawConnection
  /** Of unanswered pings, the oldest first. */
  readonly sentUs: number[]
}

/** Figures of one window. */
interface Window {
  readonly pings: RecordableHistogram
  readonly health: RecordableHistogram
  readonly healthFailures: Record<string, number>
  readonly refusals: Record<string, number>
  readonly waiting: Set<string>
  publishedCount: number
  pingCount: number
  healthCount: number
  healthsOpen: number
}

/** Honest clients that publish on a schedule, ping, and look at `/health`, each without waiting for the last answer. */
export class Prober {
  #port = 0
  #payloadBytes = 0
  #keyPrefix = ''
  #publishers: readonly Publisher[] = []
  #pingers: readonly Pinger[] = []
  #window: Window = emptyWindow()
  readonly #tally = new Tally()

  async connect({ port, publishers, keyPrefix, pingers, payloadBytes, tokens }: ProbeConnectCommand): Promise<void> {
    this.#port = port
    this.#payloadBytes = payloadBytes
    const optionsOf = (place: number) => (tokens?.[place] === undefined ? {} : { token: tokens[place] })
    const made: Publisher[] = []
    for (let place = 0; place < publishers; place++) {
      const onMessage = (header: string) => made[place]?.receive(header)
      const connection = await RawConnection.open(port, this.#tally, { ...optionsOf(place), onMessage })
      made.push(new Publisher(connection, (id, refusal) => this.#receiveAnswer(id, refusal)))
    }
    this.#keyPrefix = keyPrefix
    this.#publishers = made
    const pinging: Pinger[] = []
    for (let place = 0; place < pingers; place++) {
      const sentUs: number[] = []
      const onMessage = (header: string) => {
        if (header.startsWith('pong')) this.#receivePong(sentUs)
      }
      const options = { ...optionsOf(publishers + place), onMessage }
      pinging.push({ connection: await RawConnection.open(port, this.#tally, options), sentUs })
    }
    this.#pingers = pinging
  }

  async probe({ durationMs, publishPerSecond, firstSeq }: ProbeCommand): Promise<Probed> {
    const window = emptyWindow()
    this.#window = window
    const meter = new EventLoopMeter()
    const start = process.cpuUsage()
    const startMs = performance.now()
    const pingsPerMs = this.#pingers.length / PING_INTERVAL_MS
    let seq = firstSeq
    for (let elapsedMs = 0; elapsedMs < durationMs; elapsedMs = performance.now() - startMs) {
      while (seq - firstSeq < (elapsedMs * publishPerSecond) / 1_000) this.#publish(seq++)
      while (window.pingCount < elapsedMs * pingsPerMs) this.#ping()
      while (window.healthCount < elapsedMs / HEALTH_INTERVAL_MS) this.#checkHealth()
      await sleep(TICK_MS)
    }
    const lag = summarizeLatency(meter.lag)
    meter.stop()
    const { user, system } = process.cpuUsage(start)
    await this.#answered(window)
    // After all other answers: a listener that receives this message has received all that will come.
    this.#publish(seq)
    await this.#answered(window)
    if (window.waiting.size > 0) window.refusals.unanswered = window.waiting.size
    return {
      event: 'probed',
      lastSeq: seq,
      publishedCount: window.publishedCount,
      refusals: window.refusals,
      pingCount: window.pingCount,
      unansweredPingCount: this.#giveUpPings(),
      pingMs: summarizeLatency(window.pings),
      healthCount: window.healthCount,
      healthFailures: window.healthFailures,
      healthMs: summarizeLatency(window.health),
      closes: this.#tally.report().closes,
      cpuSeconds: (user + system) / 1_000_000,
      lagMs: lag,
    }
  }

  #publish(seq: number): void {
    const window = this.#window
    const place = seq % this.#publishers.length
    const publisher = this.#publishers[place]
    if (publisher === undefined) throw new Error('nobody publishes')
    window.publishedCount++
    if (publisher.hasEnded) {
      window.refusals.closed = (window.refusals.closed ?? 0) + 1
      return
    }
    const id = `p${seq}`
    window.waiting.add(id)
    const text = `{"t":"fanout_tick","p":{"seq":${seq},"ts_us":${Math.floor(nowUs())},"pad":""}}`
    const pad = 'x'.repeat(Math.max(0, this.#payloadBytes - text.length))
    // Message ids that anybody can guess: those of others must not make this one a duplicate.
    const header = `publish ${id} ${this.#keyPrefix}${place} id=tick-${seq}`
    publisher.publish(id, `${header}\n${text.replace('"pad":""', `"pad":"${pad}"`)}`)
  }

  #receiveAnswer(id: string, refusal: string | undefined): void {
    if (!this.#window.waiting.delete(id) || refusal === undefined) return
    this.#window.refusals[refusal] = (this.#window.refusals[refusal] ?? 0) + 1
  }

  #ping(): void {
    const pinger = this.#pingers[this.#window.pingCount++ % this.#pingers.length]
    if (pinger === undefined || pinger.connection.hasEnded) return
    pinger.sentUs.push(nowUs())
    pinger.connection.send('ping').catch(() => pinger.sentUs.pop())
  }

  #receivePong(sentUs: number[]): void {
    const atUs = sentUs.shift()
    if (atUs !== undefined) recordUs(this.#window.pings, nowUs() - atUs)
  }

  /** Counts pings without an answer with the time that they have waited. */
  #giveUpPings(): number {
    let count = 0
    for (const { sentUs } of this.#pingers) {
      count += sentUs.length
      for (const atUs of sentUs) recordUs(this.#window.pings, nowUs() - atUs)
      sentUs.length = 0
    }
    return count
  }

  /** Always on a connection of its own, as probes of orchestrators are. */
  #checkHealth(): void {
    const window = this.#window
    window.healthCount++
    window.healthsOpen++
    const startUs = nowUs()
    let isCounted = false
    const count = (failure?: string) => {
      if (isCounted) return
      isCounted = true
      window.healthsOpen--
      recordUs(window.health, nowUs() - startUs)
      if (failure !== undefined) window.healthFailures[failure] = (window.healthFailures[failure] ?? 0) + 1
    }
    const request = get({ host: '127.0.0.1', port: this.#port, path: '/health', agent: false }, (response) => {
      response.resume()
      response.once('end', () => count(response.statusCode === 200 ? undefined : String(response.statusCode)))
      response.once('error', (error) => count(error.message))
    })
    request.setTimeout(HEALTH_TIMEOUT_MS, () => request.destroy(new Error('timeout')))
    request.once('error', (error: NodeJS.ErrnoException) => count(error.code ?? error.message))
  }

  /** Resolves when all publishes, pings and requests are answered, at the latest after ten seconds. */
  async #answered(window: Window): Promise<void> {
    const latestMs = performance.now() + MAX_WAIT_MS
    const isWaiting = () =>
      window.healthsOpen > 0 ||
      (window.waiting.size > 0 && this.#publishers.some((publisher) => !publisher.hasEnded)) ||
      this.#pingers.some(({ connection, sentUs }) => sentUs.length > 0 && !connection.hasEnded)
    while (isWaiting() && performance.now() < latestMs) await sleep(WAIT_POLL_MS)
  }
}

function emptyWindow(): Window {
  return {
    pings: createLatencyHistogram(),
    health: createLatencyHistogram(),
    healthFailures: {},
    refusals: {},
    waiting: new Set(),
    publishedCount: 0,
    pingCount: 0,
    healthCount: 0,
    healthsOpen: 0,
  }
}
