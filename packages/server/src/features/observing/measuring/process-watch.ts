import { readFileSync } from 'node:fs'
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, type HeapSpaceInfo } from 'node:v8'
import { descriptorLimit } from '../../../kernel/base/descriptor-limit.js'
import { EventLoopLag, type LagStats } from './event-loop-lag.js'
import { Histogram, type HistogramStats } from './histogram.js'
import { OpenDescriptors } from './open-descriptors.js'
import { type TypeCountStats, TypeCounts } from './type-counts.js'

const GC_BOUNDS = [0.001, 0.01, 0.1, 1, 2, 5]
const GC_CODES = {
  major: constants.NODE_PERFORMANCE_GC_MAJOR,
  minor: constants.NODE_PERFORMANCE_GC_MINOR,
  incremental: constants.NODE_PERFORMANCE_GC_INCREMENTAL,
  weakcb: constants.NODE_PERFORMANCE_GC_WEAKCB,
} as const
type GcKind = keyof typeof GC_CODES
const GC_KINDS = Object.keys(GC_CODES) as readonly GcKind[]

/** How a process is. Without Linux, some of it is not known. */
export interface ProcessStats {
  /** Unix time. */
  readonly startedSeconds: number
  readonly userCpuSeconds: number
  readonly systemCpuSeconds: number
  readonly residentBytes: number | undefined
  readonly virtualBytes: number | undefined
  readonly dataBytes: number | undefined
  readonly descriptorCount: number | undefined
  /** `undefined`: no limit is known. */
  readonly descriptorLimit: number | undefined
  /** From the reading before until the event loop went on. */
  readonly readingLagSeconds: number
  /** Since the reading before. */
  readonly lag: LagStats
  readonly resources: TypeCountStats
  readonly memory: NodeJS.MemoryUsage
  readonly heapSpaces: readonly HeapSpaceInfo[]
  readonly gc: Readonly<Record<GcKind, HistogramStats>>
}

/** Watches the process from its construction on, for good. Does not keep it alive, and wakes it once a second while it is idle. */
export class ProcessWatch {
  readonly #startedSeconds = Math.round(Date.now() / 1_000 - process.uptime())
  readonly #descriptors = new OpenDescriptors()
  readonly #descriptorLimit = finite(descriptorLimit())
  readonly #lag = new EventLoopLag()
  readonly #resources = new TypeCounts(() => process.getActiveResourcesInfo())
  readonly #gc = byKind(() => new Histogram(GC_BOUNDS))
  #readingLagSeconds = 0

  constructor() {
    this.#lag.start()
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) this.#collected(entry)
    }).observe({ entryTypes: ['gc'] })
  }

  /** Cost: O(1), and that of {@link TypeCounts}; before Linux 6.2 that of {@link OpenDescriptors} as well. */
  async read(): Promise<ProcessStats> {
    const descriptorCount = await this.#descriptors.count()
    const nowMs = performance.now()
    setImmediate(() => {
      this.#readingLagSeconds = (performance.now() - nowMs) / 1_000
    })
    const cpu = process.cpuUsage()
    const memory = process.memoryUsage()
    const status = processStatus()
    return {
      startedSeconds: this.#startedSeconds,
      userCpuSeconds: cpu.user / 1e6,
      systemCpuSeconds: cpu.system / 1e6,
      residentBytes: statusBytes(status, 'VmRSS') ?? memory.rss,
      virtualBytes: statusBytes(status, 'VmSize'),
      dataBytes: statusBytes(status, 'VmData'),
      descriptorCount,
      descriptorLimit: this.#descriptorLimit,
      readingLagSeconds: this.#readingLagSeconds,
      lag: this.#lag.read(),
      resources: this.#resources.read(nowMs),
      memory,
      heapSpaces: getHeapSpaceStatistics(),
      gc: byKind((kind) => this.#gc[kind].stats()),
    }
  }

  #collected({ duration, detail }: PerformanceEntry & { readonly detail?: { readonly kind?: number } }): void {
    for (const kind of GC_KINDS) if (GC_CODES[kind] === detail?.kind) this.#gc[kind].observe(duration)
  }
}

function byKind<Value>(make: (kind: GcKind) => Value): Record<GcKind, Value> {
  return Object.fromEntries(GC_KINDS.map((kind) => [kind, make(kind)])) as Record<GcKind, Value>
}

function finite(value: number): number | undefined {
  return Number.isFinite(value) ? value : undefined
}

function processStatus(): string {
  return process.platform === 'linux' ? readFileSync('/proc/self/status', 'utf8') : ''
}

function statusBytes(status: string, name: string): number | undefined {
  const [, kibibytes] = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status) ?? []
  return kibibytes === undefined ? undefined : Number(kibibytes) * 1_024
}
