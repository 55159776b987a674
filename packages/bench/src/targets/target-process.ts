import { fileURLToPath } from 'node:url'
import { LineProcess, type LineProgram } from '../loadgen/line-process.js'
import type { LatencySummary } from '../measure/latency-histogram.js'
import type {
  KeysPublished,
  Published,
  TargetCommand,
  TargetListening,
  TargetSample,
  TargetSettings,
} from './messages.js'
import { nodeCommand } from './node-command.js'
import type { TargetChoice } from './target-table.js'

const START_TIMEOUT_MS = 30_000
const SAMPLE_TIMEOUT_MS = 30_000
/** Above the target's own limit of 30 s to finish after the last message. */
const PUBLISH_MARGIN_MS = 45_000
/** A paced load that the target cannot keep up with is abandoned after this many times its duration. */
const PACED_LIMIT_FACTOR = 3
/** Slower than any server here publishes without listeners. */
const MIN_KEYS_PER_SECOND = 1_000
/** May have another C library than the machine's; WebMQ always has the machine's. */
const UWS_PEERS: readonly string[] = ['uws.mjs', 'by-hand.mjs']
const TARGETS_FOLDER = new URL('../../targets/', import.meta.url)

/** A load at a fixed rate. */
export type PacedOptions = Omit<Extract<TargetCommand, { cmd: 'publish-paced' }>, 'cmd'>

/** A server under test, in a process of its own. */
export class TargetProcess {
  readonly failed: Promise<never>
  readonly #process: LineProcess
  #listening: TargetListening | undefined

  /**
   * @param loadgen Path of the program that contains `raw`.
   * @param deliveredCountFd Descriptor of the file that it shares with another node.
   */
  constructor(choice: TargetChoice, settings: TargetSettings, loadgen: string, deliveredCountFd?: number) {
    const program = programOf(choice, settings, loadgen)
    this.#process = new LineProcess({ ...program, ...(deliveredCountFd === undefined ? {} : { fd: deliveredCountFd }) })
    this.failed = this.#process.failed
  }

  async ready(): Promise<void> {
    this.#listening = (await this.#process.next('listening', START_TIMEOUT_MS)) as unknown as TargetListening
  }

  get pid(): number {
    return this.#process.pid
  }

  get port(): number {
    return this.#listening?.port ?? 0
  }

  get version(): string {
    return this.#listening?.version ?? ''
  }

  async publishFlood(options: Omit<Extract<TargetCommand, { cmd: 'publish-flood' }>, 'cmd'>): Promise<Published> {
    return await this.#request('publish-flood', options, 'published', options.durationMs + PUBLISH_MARGIN_MS)
  }

  /** Publishes as fast as another node delivers; resolves when that has delivered everything, or after a timeout. */
  async publishRelayed(options: Omit<Extract<TargetCommand, { cmd: 'publish-relayed' }>, 'cmd'>): Promise<Published> {
    return await this.#request('publish-relayed', options, 'published', options.durationMs + PUBLISH_MARGIN_MS)
  }

  async publishPaced(options: PacedOptions): Promise<Published> {
    const limitMs = options.durationMs * PACED_LIMIT_FACTOR + PUBLISH_MARGIN_MS
    return await this.#request('publish-paced', options, 'published', limitMs)
  }

  /** Publishes to keys without listeners. */
  async publishKeys(options: { count: number; distinctKeys: number }): Promise<KeysPublished> {
    const limitMs = (options.count / MIN_KEYS_PER_SECOND) * 1_000 + PUBLISH_MARGIN_MS
    return await this.#request('publish-keys', options, 'keys-published', limitMs)
  }

  /** Collects garbage; only in targets of Node. */
  async collect(): Promise<void> {
    await this.#request('collect', {}, 'collected', SAMPLE_TIMEOUT_MS)
  }

  async sample(): Promise<TargetSample> {
    return await this.#request('sample', {}, 'sample', SAMPLE_TIMEOUT_MS)
  }

  async stop(): Promise<void> {
    await this.#process.stop()
  }

  async #request<Answer>(cmd: string, fields: object, event: string, timeoutMs: number): Promise<Answer> {
    return (await this.#process.request({ cmd, ...fields }, event, timeoutMs)) as unknown as Answer
  }
}

function programOf(
  { label, spec, threads, title = `target ${label}` }: TargetChoice,
  { nodeFlags = [], ...settings }: TargetSettings,
  loadgen: string,
): LineProgram {
  if (spec.program === 'raw') {
    return { title, command: loadgen, args: ['raw', '--mode', String(spec.settings.mode)], hasIds: false }
  }
  const script = fileURLToPath(new URL(spec.program, TARGETS_FOLDER))
  const argument = JSON.stringify({ ...spec.settings, ...settings, ...(threads === undefined ? {} : { threads }) })
  const [command, ...loader] = UWS_PEERS.includes(spec.program) ? nodeCommand() : [process.execPath]
  return { title, command, args: [...loader, '--expose-gc', ...nodeFlags, script, argument], hasIds: false }
}

/** Lag of the event loop in milliseconds; `null`: the target has none. */
export function lagMs({ eventLoopLagUs }: TargetSample): LatencySummary | null {
  if (eventLoopLagUs === null) return null
  const { p50, p95, p99, max } = eventLoopLagUs
  return { p50: p50 / 1_000, p95: p95 / 1_000, p99: p99 / 1_000, max: max / 1_000 }
}
