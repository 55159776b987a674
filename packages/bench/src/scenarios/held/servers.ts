import { setTimeout as sleep } from 'node:timers/promises'
import { RunError } from '../../exit-codes.js'
import type { Connected, ConnectOptions, Pinged, PingOptions } from '../../loadgen/events.js'
import type { Loadgen } from '../../loadgen/loadgen.js'
import { processCpuSeconds, processUsage } from '../../measure/process-usage.js'
import { signToken } from '../../targets/json-web-token.js'
import type { Published, TargetSettings } from '../../targets/messages.js'
import { type PacedOptions, TargetProcess } from '../../targets/target-process.js'
import { reasons, type Trial } from '../../trials/trial.js'
import type { TrialContext } from '../../trials/trial-scenario.js'

/** Connections that come and go at each server before its memory counts, to warm compilers and pools. */
const WARMUP_CONNECTIONS = 500
/** As `idle` has it: growth of V8's young generation is no memory of connections. */
const FULL_YOUNG_GENERATION = '--min-semi-space-size=16'
/** A listen takes less, also while all others do the same. */
const MIN_LISTENS_PER_SECOND = 2_000
const MIN_LISTEN_TIMEOUT_MS = 30_000
/** After a reset the servers have forgotten their connections. */
const GONE_MS = 1_000
const MAX_COLLECTIONS = 12
/** A collection that leaves more than this is the last one. */
const SETTLED_SHARE = 0.998
/** A machine that is full of connections is slow. */
const CONNECT_TIMEOUT_MS = 60_000

/** Several server processes, and one generator for the connections of all. */
export class HeldServers {
  readonly loadgen: Loadgen
  readonly #targets: readonly TargetProcess[]
  readonly #context: TrialContext
  readonly #jwtSecret: string
  #userCount = 0

  private constructor(context: TrialContext, trial: Trial, targets: TargetProcess[], jwtSecret: string) {
    this.#context = context
    this.loadgen = trial.loadgen
    this.#targets = targets
    this.#jwtSecret = jwtSecret
  }

  /** Starts them one after the other: each takes all cores for a moment. */
  static async start(context: TrialContext, count: number, jwtSecret: string): Promise<HeldServers> {
    const settings: TargetSettings = { jwtSecret, nodeFlags: [FULL_YOUNG_GENERATION], isUnwatched: true }
    const trial = await context.startTrial(settings)
    const targets = [trial.target]
    while (targets.length < count) {
      const target = await context.parts.add(() => new TargetProcess(context.choice, settings, context.program))
      await target.ready()
      targets.push(target)
    }
    return new HeldServers(context, trial, targets, jwtSecret)
  }

  async warmUp(): Promise<void> {
    await this.connect(Math.min(WARMUP_CONNECTIONS * this.#targets.length, this.#context.testCase.subscribers))
    await this.loadgen.close(true)
    await sleep(GONE_MS, undefined, { signal: this.#context.signal })
  }

  /** @throws {RunError} unless every connection listens. */
  async listen(): Promise<void> {
    const { choice, testCase } = this.#context
    const { listen } = choice.spec.wire
    const timeoutMs = MIN_LISTEN_TIMEOUT_MS + Math.ceil((testCase.subscribers / MIN_LISTENS_PER_SECOND) * 1_000)
    const { failed } = await this.loadgen.send(listen?.texts ?? [], listen?.awaited ?? '', timeoutMs)
    if (failed > 0) throw new RunError(`${failed} connections got no answer to their listen`)
  }

  /**
   * One server after the other, with tokens of users that nobody else is.
   * @throws {RunError} unless every single one connects.
   * @returns how long connecting took, in seconds
   */
  async connect(count: number): Promise<number> {
    const { choice, progress } = this.#context
    let durationUs = 0
    let openCount = 0
    for (const [index, { port }] of this.#targets.entries()) {
      const share = Math.floor((count + index) / this.#targets.length)
      const options: ConnectOptions = { ...choice.spec.wire.connect, port, count: share, tokens: this.#tokens(share) }
      const connecting = this.loadgen.connect({ ...options, timeoutMs: CONNECT_TIMEOUT_MS })
      const connected: Connected = await progress.during(connecting)
      if (connected.failed > 0)
        throw new RunError(
          `${connected.failed} of ${share} connections failed after ${openCount}: ${reasons(connected)}`,
        )
      openCount += share
      durationUs += connected.durationUs
    }
    return durationUs / 1_000_000
  }

  #tokens(count: number): string[] {
    const nowS = Math.floor(Date.now() / 1_000)
    return Array.from({ length: count }, () => signToken(this.#jwtSecret, `user-${this.#userCount++}`, nowS))
  }

  async ping(options: Pick<PingOptions, 'perConnection' | 'intervalMs' | 'timeoutMs'>): Promise<Pinged> {
    const { text, await: awaited } = this.#context.choice.spec.wire.ping
    return await this.loadgen.ping({ ...options, kind: 'app', text, await: awaited })
  }

  /** Every server publishes to its connections, all at the same times. */
  async publish(options: PacedOptions): Promise<readonly Published[]> {
    return await Promise.all(this.#targets.map((target) => target.publishPaced(options)))
  }

  /** Of all of them, once collecting garbage brings nothing more: V8 forgets the code of the start only after a while. */
  async settledRssBytes(): Promise<number> {
    let bytes = this.rssBytes()
    for (let round = 0; round < MAX_COLLECTIONS; round++) {
      await Promise.all(this.#targets.map((target) => target.collect()))
      const before = bytes
      bytes = this.rssBytes()
      if (bytes > before * SETTLED_SHARE) break
    }
    return bytes
  }

  rssBytes(): number {
    return this.#targets.reduce((sum, { pid }) => sum + processUsage(pid).rssBytes, 0)
  }

  /** User and system time of all of them. */
  cpuSeconds(): number {
    return this.#targets.reduce((sum, { pid }) => sum + (processCpuSeconds(pid) ?? 0), 0)
  }
}
