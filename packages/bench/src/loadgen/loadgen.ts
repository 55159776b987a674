import type {
  Connected,
  ConnectOptions,
  Counted,
  CountOptions,
  CountStopOptions,
  FloodedIn,
  FloodInOptions,
  LoadgenStats,
  Pinged,
  PingOptions,
} from './events.js'
import { LineProcess } from './line-process.js'
import type {
  PlayedClientsPlan,
  PlayedTally,
  ReplayPlan,
  ReplayReport,
  VirtualUsersPlan,
  VirtualUsersReport,
} from './plans.js'

/** Above the generator's own limits, so that its error message comes first. */
const ANSWER_MARGIN_MS = 15_000
const READY_TIMEOUT_MS = 10_000
const STATS_TIMEOUT_MS = 10_000
/** The generator's default timeout. */
const CONNECTION_TIMEOUT_MS = 10_000
const COUNT_STOP_TIMEOUT_MS = 10_000
const PING_TIMEOUT_MS = 30_000
const SEND_TIMEOUT_MS = 30_000
/** A plan whose clients are not connected by then fails. */
const CLIENTS_TIMEOUT_MS = 30_000
/** Slower than any server here accepts connections. */
const MIN_CONNECTS_PER_SECOND = 100

export interface LoadgenOptions {
  readonly program: string
  readonly threads: number
}

/** The load generator: a process of its own that opens connections, sends, counts arrivals, and plays clients by a plan. */
export class Loadgen {
  readonly failed: Promise<never>
  readonly #process: LineProcess

  constructor({ program, threads }: LoadgenOptions) {
    this.#process = new LineProcess({
      title: 'the load generator',
      command: program,
      args: ['--threads', String(threads)],
      hasIds: true,
    })
    this.failed = this.#process.failed
  }

  get pid(): number {
    return this.#process.pid
  }

  async ready(): Promise<void> {
    await this.#process.next('ready', READY_TIMEOUT_MS)
  }

  async connect(options: ConnectOptions): Promise<Connected> {
    const timeoutMs = options.timeoutMs ?? CONNECTION_TIMEOUT_MS
    const limitMs = timeoutMs + (options.count / MIN_CONNECTS_PER_SECOND) * 1_000 + ANSWER_MARGIN_MS
    return await this.#request<Connected>('connect', { ...options, timeoutMs }, 'connected', limitMs)
  }

  /** Sends texts on every connection and waits for a message that begins with `awaited` on each. */
  async send(
    texts: readonly string[],
    awaited: string,
    timeoutMs = SEND_TIMEOUT_MS,
  ): Promise<{ readonly ok: number; readonly failed: number }> {
    const command = { perConnection: texts, await: awaited, timeoutMs }
    return await this.#request('send', command, 'sent', timeoutMs + ANSWER_MARGIN_MS)
  }

  /** Opens a window; every frame counts from the moment this resolves. */
  async startCounting(options: CountOptions): Promise<void> {
    await this.#request('count', options, 'counting', ANSWER_MARGIN_MS)
  }

  async stopCounting(options: CountStopOptions): Promise<Counted> {
    const timeoutMs = options.timeoutMs ?? COUNT_STOP_TIMEOUT_MS
    return await this.#request<Counted>(
      'count-stop',
      { ...options, timeoutMs },
      'counted',
      timeoutMs + ANSWER_MARGIN_MS,
    )
  }

  async floodIn(options: FloodInOptions): Promise<FloodedIn> {
    return await this.#request<FloodedIn>('flood-in', options, 'flooded-in', options.durationMs + ANSWER_MARGIN_MS)
  }

  async ping(options: PingOptions): Promise<Pinged> {
    const timeoutMs = options.timeoutMs ?? PING_TIMEOUT_MS
    return await this.#request<Pinged>('ping', { ...options, timeoutMs }, 'pinged', timeoutMs + ANSWER_MARGIN_MS)
  }

  /** Makes a share of the connections stop reading, or read this many bytes per second. */
  async slow(
    share: number,
    bytesPerSecond?: number,
  ): Promise<{ readonly connections: number; readonly reading: number }> {
    const mode = bytesPerSecond === undefined ? { mode: 'stop' } : { mode: 'throttle', bytesPerSecond }
    return await this.#request('slow', { share, ...mode }, 'slowed', ANSWER_MARGIN_MS)
  }

  async stats(): Promise<LoadgenStats> {
    return await this.#request<LoadgenStats>('stats', {}, 'stats', STATS_TIMEOUT_MS)
  }

  /** Closes every connection. @param isAbrupt Resets them instead. */
  async close(isAbrupt: boolean): Promise<void> {
    await this.#request('close', { timeoutMs: ANSWER_MARGIN_MS, abrupt: isAbrupt }, 'closed', 2 * ANSWER_MARGIN_MS)
  }

  /** Connects clients; resolves when each is connected and every listen confirmed. */
  async connectClients(plan: PlayedClientsPlan): Promise<void> {
    const command = { ...plan, timeoutMs: CLIENTS_TIMEOUT_MS }
    await this.#request('clients', command, 'clients-connected', CLIENTS_TIMEOUT_MS + ANSWER_MARGIN_MS)
  }

  /** Starts what the clients publish. @param window On the machine's monotonic clock. */
  async beginClients({ startUs, endUs }: { readonly startUs: number; readonly endUs: number }): Promise<void> {
    await this.#request('clients-begin', { startUs, endUs }, 'clients-begun', ANSWER_MARGIN_MS)
  }

  /** Takes the counts of the clients, by thread, and closes them. */
  async finishClients(): Promise<readonly PlayedTally[]> {
    const answer = await this.#request<{ readonly threads: readonly PlayedTally[] }>(
      'clients-finish',
      {},
      'clients-finished',
      ANSWER_MARGIN_MS,
    )
    return answer.threads
  }

  /** Plays virtual users; resolves when the last one has gone. @param limitMs Timeout. */
  async runUsers(plan: VirtualUsersPlan, limitMs: number): Promise<VirtualUsersReport> {
    return await this.#request<VirtualUsersReport>('users', plan, 'users-ran', limitMs)
  }

  /** Replays a log to one client repeatedly. @param limitMs Timeout. */
  async replay(plan: ReplayPlan, limitMs: number): Promise<ReplayReport> {
    return await this.#request<ReplayReport>('replay', plan, 'replayed', limitMs)
  }

  async stop(): Promise<void> {
    await this.#process.stop()
  }

  async #request<Answer>(cmd: string, fields: object, event: string, timeoutMs: number): Promise<Answer> {
    const answer = await this.#process.request({ cmd, ...fields }, event, timeoutMs)
    return answer as unknown as Answer // As the generator's README has it; both are of one repository.
  }
}
