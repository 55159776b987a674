import type { LatencySummary } from './measure/latency-histogram.js'
import { processCpuSeconds } from './measure/process-usage.js'
import type { ServerOptions } from './options.js'
import type { TargetSettings } from './targets/messages.js'
import { lagMs, TargetProcess } from './targets/target-process.js'
import { webmq } from './targets/target-table.js'

export interface BackendSample {
  /** User and system time since the process started, all threads. */
  readonly cpuSeconds: number
  readonly rssBytes: number
  /** Largest so far. */
  readonly peakRssBytes: number
  /** Publishes that were refused for a time, since the process started; 0 from servers that do not count them. */
  readonly refusedCount: number
  /** How late timers fired since the last sample. */
  readonly eventLoopLagMs: LatencySummary
}

/** What the clients of a run need beyond the server's defaults; the proxy is a load balancer on this machine. */
export const BACKEND_LIMITS = {
  maxListensPerConnection: 128,
  maxPayloadBytes: 256 * 1_024,
  trustedProxies: ['loopback'],
} as const

/** The servers under test, each in a process of its own. */
export class Backends {
  readonly failed: Promise<never>
  readonly #processes: readonly TargetProcess[]

  /** @param settingsOf By place, from 0. @param program Of the servers: WebMQ, or one by hand. */
  constructor(
    count: number,
    transport: ServerOptions['transport'],
    settingsOf: (index: number) => Omit<TargetSettings, 'transport'>,
    program: 'webmq.mjs' | 'by-hand.mjs' = 'webmq.mjs',
  ) {
    this.#processes = Array.from({ length: count }, (_, index) => {
      const label = `backend ${index}`
      const spec = { name: label, program, settings: { transport }, abilities: [], wire: webmq } as const
      return new TargetProcess({ label, title: label, spec }, settingsOf(index), '')
    })
    this.failed = Promise.race(this.#processes.map(({ failed }) => failed))
    this.failed.catch(() => undefined) // Whoever waits for something races against it; between two waits nobody does.
  }

  async ready(): Promise<void> {
    await Promise.all(this.#processes.map((backend) => backend.ready()))
  }

  get ports(): readonly number[] {
    return this.#processes.map(({ port }) => port)
  }

  /** What they say about themselves. */
  get version(): string {
    return this.#processes[0]?.version ?? ''
  }

  get pids(): readonly number[] {
    return this.#processes.map(({ pid }) => pid)
  }

  /** Addresses of the servers. @param scheme `wss` where they serve TLS. */
  urls(scheme: 'ws' | 'wss' = 'ws'): string[] {
    return this.ports.map((port) => `${scheme}://127.0.0.1:${port}/ws`)
  }

  async sample(): Promise<BackendSample[]> {
    return await Promise.all(
      this.#processes.map(async (backend) => {
        const sample = await backend.sample()
        const { cpuUserUs, cpuSystemUs, rssBytes, peakRssBytes = rssBytes, refusedCount = 0 } = sample
        const cpuSeconds = (cpuUserUs + cpuSystemUs) / 1_000_000
        const nothing = { p50: null, p95: null, p99: null, max: null }
        return { cpuSeconds, rssBytes, peakRssBytes, refusedCount, eventLoopLagMs: lagMs(sample) ?? nothing }
      }),
    )
  }

  /** User and system time of all of them so far, as the kernel counts it; `null`: one has ended. */
  cpuSeconds(): number | null {
    const each = this.pids.map(processCpuSeconds)
    return each.some((seconds) => seconds === null) ? null : each.reduce((sum: number, one) => sum + Number(one), 0)
  }

  async stop(): Promise<void> {
    await Promise.all(this.#processes.map((backend) => backend.stop()))
  }
}
