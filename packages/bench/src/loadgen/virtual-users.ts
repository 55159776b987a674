import { LineProcess } from './line-process.js'
import type {
  ReplayPlan,
  ReplayReport,
  VirtualUsersPlan,
  VirtualUsersReport,
  VirtualUsersStats,
} from './virtual-users-events.js'

const READY_TIMEOUT_MS = 10_000
const STATS_TIMEOUT_MS = 10_000

/** The program that plays virtual users: a process of its own, with one thread. */
export class VirtualUsers {
  /** Rejects when the process ends; never resolves. */
  readonly failed: Promise<never>
  readonly #process: LineProcess

  /** @param program Path of `webmq-users`. */
  constructor(program: string) {
    this.#process = new LineProcess({ title: 'the virtual users', command: program, args: ['users'], hasIds: true })
    this.failed = this.#process.failed
  }

  get pid(): number {
    return this.#process.pid
  }

  /** Resolves when the process takes commands. */
  async ready(): Promise<void> {
    await this.#process.next('ready', READY_TIMEOUT_MS)
  }

  /** Plays one run; resolves when the last user has gone. @param limitMs Timeout. */
  async run(plan: VirtualUsersPlan, limitMs: number): Promise<VirtualUsersReport> {
    const answer = await this.#process.request({ cmd: 'run', ...plan }, 'ran', limitMs)
    return answer as unknown as VirtualUsersReport // As the generator's README has it; both are of one repository.
  }

  /** Replays a log to one client repeatedly. @param limitMs Timeout. */
  async replay(plan: ReplayPlan, limitMs: number): Promise<ReplayReport> {
    const answer = await this.#process.request({ cmd: 'replay', ...plan }, 'replayed', limitMs)
    return answer as unknown as ReplayReport
  }

  async stats(): Promise<VirtualUsersStats> {
    return (await this.#process.request({ cmd: 'stats' }, 'stats', STATS_TIMEOUT_MS)) as unknown as VirtualUsersStats
  }

  /** Ends the process; resolves when it is gone. Idempotent. */
  async stop(): Promise<void> {
    await this.#process.stop()
  }
}
