import { setTimeout as sleep } from 'node:timers/promises'
import { RunError } from '../exit-codes.js'
import type { Connected, ConnectOptions, Counted, MicrosecondSummary } from '../loadgen/events.js'
import { Loadgen } from '../loadgen/loadgen.js'
import { nowUs } from '../measure/clock.js'
import { type ProcessUsage, processCpuSeconds, processUsage } from '../measure/process-usage.js'
import type { LatencyMs } from '../results/result.js'
import { signToken } from '../targets/json-web-token.js'
import type { Published, TargetSample, TargetSettings } from '../targets/messages.js'
import { lagMs, type PacedOptions, TargetProcess } from '../targets/target-process.js'
import type { TargetChoice, TargetWire } from '../targets/target-table.js'
import { SERVER_NAME } from './run-certificate.js'
import type { Evidence } from './verdict.js'

const MAX_GONE_MS = 5_000
const GONE_POLL_MS = 20
/**
 * Receive buffers of the generator, over all connections. By default Linux allows up to 32 MiB each, and less than 10 %
 * of the memory for all of TCP. A flood to 1,000 connections exceeds that; packets are then dropped and sent again
 * after seconds, and connections end. Twice this, and as much on the server's side, fits a machine of 24 GiB.
 */
const MAX_RECEIVE_BUFFERS_BYTES = 512 * 1024 * 1024
const MAX_RECEIVE_BUFFER_BYTES = 1024 * 1024

export interface TrialOptions {
  readonly choice: TargetChoice
  readonly settings: TargetSettings
  readonly program: string
  readonly generatorThreads: number
  /** Descriptor of the file in which the server reports its deliveries; absent: it does not. */
  readonly deliveredCountFd?: number
}

/** Resources that a generator has used up to one moment. */
export interface GeneratorMark {
  readonly atUs: number
  readonly generatorCpuSeconds: number
}

/** Resources that server and generator have used up to one moment. */
export interface UsageMark extends GeneratorMark {
  readonly sample: TargetSample
  readonly server: ProcessUsage
  /** Set when one node publishes and another, `server`, has the connections. */
  readonly relay?: {
    readonly publisherCpuSeconds: number
    readonly publisherRssBytes: number
    /** `null`: the broker is part of the nodes. */
    readonly brokerCpuSeconds: number | null
  }
}

/** Resources used between two moments, as members of a row. */
export interface Usage {
  /** Of all nodes; `null`: the server is not the run's own. */
  readonly serverCpuSeconds: number | null
  readonly serverRssBytes: number | null
  readonly serverPeakRssBytes: number | null
  readonly serverEventLoopLagMs: LatencyMs | null
  readonly generatorCpuSeconds: number
  /** With two nodes: by process. */
  readonly publisherCpuSeconds?: number
  readonly listenerCpuSeconds?: number
  readonly brokerCpuSeconds?: number | null
}

/** What a scenario measures: a server, and the generator of its connections. */
export interface Subject {
  readonly loadgen: Loadgen
  readonly suites: readonly string[]
  /** Makes connections; some may fail. */
  tryConnect(options: Omit<ConnectOptions, 'port' | 'tls'>): Promise<Connected>
  /** Why connections failed, the most frequent reason first. */
  reasons(connected: Connected): string
  /** Makes connections that receive published messages. @throws {RunError} unless every single one does. */
  subscribe(count: number): Promise<Connected>
  publishPaced(options: PacedOptions): Promise<Published>
  /** The first message that everybody should get; `undefined`: the first to come. @param before The warm-up. */
  firstSeqAfter(before: Published | undefined): number | undefined
  /** Who did not keep the pace, and why. */
  lateness(
    published: Published,
    counted: Counted,
    intendedCount: number,
  ): Pick<Evidence, 'serverLate' | 'generatorLate'>
  /** The connections that the server has closed, as a sentence; `null`: none. */
  whyClosed(): Promise<string | null>
  mark(): Promise<GeneratorMark>
  /** CPU time of the servers so far, without asking them; `null`: they are not the run's own, or have ended. */
  serverCpuSeconds(): number | null
}

/** A publisher or a tail later than this did not keep the pace. */
export const MAX_LATE_MS = 100
const MAX_TAIL_MS = 1_000
/** Share of the messages on the schedule. */
const MIN_PUBLISHED_RATIO = 0.99

/** One server under test and one load generator, fresh for one measurement. */
export class Trial implements Subject {
  readonly target: TargetProcess
  readonly loadgen: Loadgen
  readonly failed: Promise<never>
  readonly #options: TrialOptions
  readonly #loadgens: Loadgen[] = []
  readonly #suites = new Set<string>()

  constructor(options: TrialOptions) {
    this.#options = options
    const { choice, settings, program, deliveredCountFd } = options
    this.target = new TargetProcess(choice, settings, program, deliveredCountFd)
    this.loadgen = this.addLoadgen()
    this.failed = Promise.race([this.target.failed, this.loadgen.failed])
    this.failed.catch(() => undefined) // Whoever measures races against it; between two waits nobody does.
  }

  /** Resolves when the server accepts connections and the generator commands. */
  async ready(): Promise<void> {
    await Promise.all([this.target.ready(), this.loadgen.ready()])
  }

  /** Starts one more generator, for separate connections. */
  addLoadgen(): Loadgen {
    const { program, generatorThreads } = this.#options
    const loadgen = new Loadgen({ program, threads: generatorThreads })
    this.#loadgens.push(loadgen)
    return loadgen
  }

  get suites(): readonly string[] {
    return [...this.#suites]
  }

  /** Makes connections; some may fail. @param resume Whether TLS uses tickets of earlier connections. */
  async tryConnect(
    options: Omit<ConnectOptions, 'port' | 'tls'>,
    { loadgen = this.loadgen, resume = false }: { readonly loadgen?: Loadgen; readonly resume?: boolean } = {},
  ): Promise<Connected> {
    const { choice, settings } = this.#options
    const secret = choice.spec.settings.jwtSecret
    // A target with tokens of its own: each connection is a user.
    const own =
      secret === undefined || settings.jwtSecret !== undefined ? {} : { tokens: tokens(secret, options.count) }
    const tls = settings.tls === undefined ? {} : { tls: { serverName: SERVER_NAME, insecure: true, resume } }
    const connected = await loadgen.connect({
      ...choice.spec.wire.connect,
      ...own,
      ...options,
      ...tls,
      port: this.target.port,
    })
    for (const suite of Object.keys(connected.tls?.suites ?? {})) this.#suites.add(suite)
    return connected
  }

  /**
   * Makes connections that receive published messages.
   * @throws {RunError} unless every single one does.
   */
  async subscribe(
    count: number,
    options: Omit<ConnectOptions, 'port' | 'count' | 'tls'> = {},
    loadgen = this.loadgen,
    room?: TargetWire['room'],
  ): Promise<Connected> {
    const receiveBufferBytes = Math.min(MAX_RECEIVE_BUFFER_BYTES, Math.floor(MAX_RECEIVE_BUFFERS_BYTES / count))
    const connected = await this.tryConnect({ receiveBufferBytes, ...options, count }, { loadgen })
    if (connected.failed > 0)
      throw new RunError(`${connected.failed} of ${count} connections failed: ${reasons(connected)}`)
    for (const step of [this.#options.choice.spec.wire.listen, room]) {
      if (step === undefined) continue
      const { failed } = await loadgen.send(step.texts, step.awaited)
      if (failed > 0) throw new RunError(`${failed} connections got no answer to '${step.texts.join(', ')}'`)
    }
    return connected
  }

  reasons(connected: Connected): string {
    return reasons(connected)
  }

  async publishPaced(options: PacedOptions): Promise<Published> {
    return await this.target.publishPaced(options)
  }

  firstSeqAfter(before: Published | undefined): number | undefined {
    return before === undefined ? undefined : before.lastSeq + 1
  }

  /** A late publisher is a late server: it publishes in its process. */
  lateness(published: Published, counted: Counted, intendedCount: number): { readonly serverLate: string | null } {
    return { serverLate: whyLate(published, counted, intendedCount) }
  }

  async whyClosed(): Promise<string | null> {
    const { closed } = await this.loadgen.stats()
    const count = Object.values(closed).reduce((sum, ofCode) => sum + ofCode, 0)
    return count > 0 ? `the server closed ${count.toLocaleString('en')} connections` : null
  }

  /** Resolves once the server has seen all connections go, at the latest after five seconds. */
  async allGone(): Promise<void> {
    const latestMs = performance.now() + MAX_GONE_MS
    while ((await this.target.sample()).connections > 0 && performance.now() < latestMs) await sleep(GONE_POLL_MS)
  }

  /** Resources that all have used up to now; also starts the next measurement of event-loop lag. */
  async mark(): Promise<UsageMark> {
    const sample = await this.target.sample()
    const atUs = nowUs()
    const { cpuUserUs, cpuSystemUs } = await this.loadgen.stats()
    const generatorCpuSeconds = (cpuUserUs + cpuSystemUs) / 1_000_000
    return { atUs, sample, server: processUsage(this.target.pid), generatorCpuSeconds }
  }

  serverCpuSeconds(): number | null {
    return processCpuSeconds(this.target.pid)
  }

  async stop(): Promise<void> {
    await Promise.all(this.#loadgens.map((loadgen) => loadgen.stop()))
    await this.target.stop()
  }
}

function tokens(secret: string, count: number): string[] {
  const nowS = Math.floor(Date.now() / 1_000)
  return Array.from({ length: count }, (_, number) => signToken(secret, `user-${number}`, nowS))
}

/** In less time than this the generator's own housekeeping dominates. */
const MIN_JUDGED_SECONDS = 0.05

/** A generator's share of its cores, 0 to 1; `null` when the time is too short to tell. */
export function generatorShare(cpuSeconds: number, seconds: number, threads: number): number | null {
  return seconds < MIN_JUDGED_SECONDS ? null : Math.min(1, cpuSeconds / (seconds * threads))
}

/** Why connections failed, the most frequent reason first. */
export function reasons({ errors }: Connected): string {
  return Object.entries(errors)
    .toSorted(([, a], [, b]) => b - a)
    .map(([reason, count]) => `${reason} (${count.toLocaleString('en')})`)
    .join(', ')
}

function whyLate({ count, lateUs, durationUs }: Published, counted: Counted, intendedCount: number): string | null {
  if (count < intendedCount * MIN_PUBLISHED_RATIO) {
    return `it took ${count.toLocaleString('en')} of ${intendedCount.toLocaleString('en')} messages`
  }
  const lateMs = (lateUs?.p99 ?? 0) / 1_000
  if (lateMs > MAX_LATE_MS) return `messages were published ${Math.round(lateMs)} ms late (p99)`
  const tailMs = (counted.lastFrameUs - counted.firstFrameUs - durationUs) / 1_000
  return tailMs > MAX_TAIL_MS ? `the last message came ${Math.round(tailMs)} ms after it was published` : null
}

/** CPU times are the kernel's accounting, as in `/proc/<pid>/stat`, but not in steps of 10 ms. */
export function usageBetween(start: GeneratorMark | UsageMark, end: GeneratorMark | UsageMark): Usage {
  const generatorCpuSeconds = end.generatorCpuSeconds - start.generatorCpuSeconds
  if (!('sample' in start && 'sample' in end)) return { ...NOT_SEEN, generatorCpuSeconds }
  const cpuUs = ({ sample }: UsageMark) => sample.cpuUserUs + sample.cpuSystemUs
  const usage = {
    serverCpuSeconds: (cpuUs(end) - cpuUs(start)) / 1_000_000,
    serverRssBytes: end.server.rssBytes,
    serverPeakRssBytes: end.server.peakRssBytes,
    serverEventLoopLagMs: lagMs(end.sample),
    generatorCpuSeconds,
  }
  return start.relay === undefined || end.relay === undefined ? usage : withRelay(usage, start.relay, end.relay)
}

/** Of a server that is not the run's own. */
const NOT_SEEN = {
  serverCpuSeconds: null,
  serverRssBytes: null,
  serverPeakRssBytes: null,
  serverEventLoopLagMs: null,
} as const

type RelayPart = NonNullable<UsageMark['relay']>

function withRelay(
  listener: Usage & Readonly<Record<'serverCpuSeconds' | 'serverRssBytes', number>>,
  start: RelayPart,
  end: RelayPart,
): Usage {
  const publisherCpuSeconds = end.publisherCpuSeconds - start.publisherCpuSeconds
  const hasBroker = start.brokerCpuSeconds !== null && end.brokerCpuSeconds !== null
  return {
    ...listener,
    serverCpuSeconds: listener.serverCpuSeconds + publisherCpuSeconds,
    serverRssBytes: listener.serverRssBytes + end.publisherRssBytes,
    publisherCpuSeconds,
    listenerCpuSeconds: listener.serverCpuSeconds,
    brokerCpuSeconds: hasBroker ? Number(end.brokerCpuSeconds) - Number(start.brokerCpuSeconds) : null,
  }
}

/** A distribution of the generator in milliseconds. */
export function latencyMs(summary: MicrosecondSummary | null | undefined): LatencyMs | null {
  if (summary === null || summary === undefined || summary.count === 0) return null
  const { p50, p95, p99, p999, p9999, max } = summary
  return {
    p50: p50 / 1_000,
    p95: p95 / 1_000,
    p99: p99 / 1_000,
    p999: p999 / 1_000,
    p9999: p9999 / 1_000,
    max: max / 1_000,
  }
}
