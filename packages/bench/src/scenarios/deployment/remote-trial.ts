import type { Deployment } from '../../deployment/deployment.js'
import type { Reached } from '../../deployment/probe.js'
import { faultText } from '../../deployment/refusal.js'
import { RunError } from '../../exit-codes.js'
import type { Connected } from '../../loadgen/events.js'
import { Loadgen } from '../../loadgen/loadgen.js'
import { nowUs } from '../../measure/clock.js'
import type { Parts } from '../../parts.js'
import type { Published } from '../../targets/messages.js'
import type { PacedOptions } from '../../targets/target-process.js'
import { webmq } from '../../targets/target-table.js'
import { MAX_LATE_MS, type Subject } from '../../trials/trial.js'

/** Handshakes in flight. */
const MAX_CONNECTING = 32
const MAX_HINTS = 3
/** A typical number of a message. */
const SEQUENCE_DIGITS = 4

/** How generators and connections are made. */
interface Means {
  readonly program: string
  readonly threads: number
  readonly connectRate: number
  readonly parts: Parts
}

/** A server that runs already, and a load generator; a second one publishes. */
export class DeploymentTrial implements Subject {
  readonly loadgen: Loadgen
  readonly #deployment: Deployment
  readonly #reached: Reached
  readonly #means: Means
  readonly #suites = new Set<string>()
  #publisher: Loadgen | undefined

  private constructor(loadgen: Loadgen, deployment: Deployment, reached: Reached, means: Means) {
    this.loadgen = loadgen
    this.#deployment = deployment
    this.#reached = reached
    this.#means = means
  }

  static async start(deployment: Deployment, reached: Reached, means: Means): Promise<DeploymentTrial> {
    return new DeploymentTrial(await startLoadgen(means), deployment, reached, means)
  }

  get suites(): readonly string[] {
    return [...this.#suites]
  }

  async tryConnect({ count }: { readonly count: number }, loadgen = this.loadgen): Promise<Connected> {
    const { url, token, isInsecure, ca } = this.#deployment
    const isSecure = url.protocol === 'wss:'
    const serverName = url.hostname.replace(/^\[(.*)\]$/, '$1')
    const connected = await loadgen.connect({
      ...webmq.connect,
      path: `${url.pathname}${url.search}`,
      host: this.#reached.address,
      port: url.port === '' ? (isSecure ? 443 : 80) : Number(url.port),
      authority: url.host,
      count,
      batch: MAX_CONNECTING,
      perSecond: this.#means.connectRate,
      ...(token === undefined ? {} : { tokens: [token] }),
      ...(isSecure ? { tls: { serverName, insecure: isInsecure, ...(ca === undefined ? {} : { ca }) } } : {}),
    })
    for (const suite of Object.keys(connected.tls?.suites ?? {})) this.#suites.add(suite)
    return connected
  }

  /** Each with what to do. */
  reasons({ errors }: Connected): string {
    return Object.entries(errors)
      .toSorted(([, a], [, b]) => b - a)
      .slice(0, MAX_HINTS)
      .map(([reason, count]) => `${this.#explain(reason)} (${count.toLocaleString('en')})`)
      .join('. ')
  }

  async subscribe(count: number): Promise<Connected> {
    const connected = await this.#connect(count, this.loadgen)
    const { failed } = await this.loadgen.send([`listen 1 ${this.#key}`], 'ok 1')
    if (failed > 0) throw new RunError(`${failed} connections got no answer to listen`)
    return connected
  }

  async publishPaced({ perSecond, durationMs, payloadBytes }: PacedOptions): Promise<Published> {
    const publisher = this.#publisher ?? (await startLoadgen(this.#means))
    if (this.#publisher === undefined) await this.#connect(1, publisher)
    this.#publisher = publisher
    const frame = `publish - ${this.#key}\n${tick(payloadBytes)}`
    const sent = await publisher.floodIn({ durationMs, frame, connections: 1, mode: 'paced', perSecond })
    const { writtenFrames: count, durationUs, lateUs } = sent
    return { event: 'published', count, durationUs, drainedUs: durationUs, firstSeq: 1, lastSeq: count, lateUs }
  }

  /** The generator numbers the messages of each load from 1. */
  firstSeqAfter(): number {
    return 1
  }

  lateness({ lateUs }: Published): { readonly generatorLate: string | null } {
    const isLate = (lateUs?.p99 ?? 0) / 1_000 > MAX_LATE_MS
    return { generatorLate: isLate ? 'messages were sent late' : null }
  }

  async whyClosed(): Promise<string | null> {
    for (const { closed } of await this.#stats()) {
      const reasons = Object.entries(closed).map(
        ([code, count]) => `${count.toLocaleString('en')} connections: ${this.#explain(`closed ${code}`)}`,
      )
      if (reasons.length > 0) return `the server closed ${reasons.join(', ')}`
    }
    return null
  }

  serverCpuSeconds(): null {
    return null
  }

  async mark() {
    const stats = await this.#stats()
    const cpuUs = stats.reduce((sum, { cpuUserUs, cpuSystemUs }) => sum + cpuUserUs + cpuSystemUs, 0)
    return { atUs: nowUs(), generatorCpuSeconds: cpuUs / 1_000_000 }
  }

  get #key(): string {
    return `${this.#deployment.keyPrefix}.tick`
  }

  async #stats() {
    const loadgens = this.#publisher === undefined ? [this.loadgen] : [this.loadgen, this.#publisher]
    return await Promise.all(loadgens.map((loadgen) => loadgen.stats()))
  }

  /** @throws {RunError} unless every single connection is made; it says why, and what to do. */
  async #connect(count: number, loadgen: Loadgen): Promise<Connected> {
    const connected = await this.tryConnect({ count }, loadgen)
    if (connected.failed === 0) return connected
    throw new RunError(`${connected.failed} of ${count} connections failed: ${this.reasons(connected)}`)
  }

  #explain(fault: string): string {
    return faultText(fault, this.#deployment.keyPrefix)
  }
}

async function startLoadgen({ program, threads, parts }: Means): Promise<Loadgen> {
  const loadgen = await parts.add(() => new Loadgen({ program, threads }))
  await loadgen.ready()
  return loadgen
}

/** A message with the places that the load generator fills; about `bytes` long. */
function tick(bytes: number): string {
  const bare = '{"t":"tick","p":{"seq":,"ts_us":},"pad":""}'.length + SEQUENCE_DIGITS + `${Math.trunc(nowUs())}`.length
  return `{"t":"tick","p":{"seq":$SEQ,"ts_us":$TS_US},"pad":"${'x'.repeat(Math.max(0, bytes - bare))}"}`
}
