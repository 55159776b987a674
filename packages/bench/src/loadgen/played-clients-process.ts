import { LineProcess } from './line-process.js'
import type { PlayedClientsPlan, PlayedStats, PlayedTally } from './played-clients-events.js'

const READY_TIMEOUT_MS = 10_000
/** A run whose clients are not connected by then fails. */
const CONNECT_TIMEOUT_MS = 30_000
const ANSWER_MARGIN_MS = 15_000

/** The program that plays the clients: a process of its own. */
export class PlayedClientsProcess {
  /** Rejects when the process ends; never resolves. */
  readonly failed: Promise<never>
  readonly #process: LineProcess

  /** @param program Path of `webmq-loadgen`. */
  constructor(program: string) {
    this.#process = new LineProcess({ title: 'the load generator', command: program, args: ['clients'], hasIds: true })
    this.failed = this.#process.failed
  }

  /** Resolves when the process takes commands. */
  async ready(): Promise<void> {
    await this.#process.next('ready', READY_TIMEOUT_MS)
  }

  /** Resolves when every client is connected and every listen confirmed. */
  async connect(plan: PlayedClientsPlan): Promise<void> {
    const command = { cmd: 'connect', ...plan, timeoutMs: CONNECT_TIMEOUT_MS }
    await this.#process.request(command, 'connected', CONNECT_TIMEOUT_MS + ANSWER_MARGIN_MS)
  }

  /** @param window On the machine's monotonic clock. */
  async begin({ startUs, endUs }: { readonly startUs: number; readonly endUs: number }): Promise<void> {
    await this.#process.request({ cmd: 'begin', startUs, endUs }, 'begun', ANSWER_MARGIN_MS)
  }

  async stats(): Promise<PlayedStats> {
    return (await this.#process.request({ cmd: 'stats' }, 'stats', ANSWER_MARGIN_MS)) as unknown as PlayedStats
  }

  /** Takes the counts and closes the clients. */
  async finish(): Promise<{ readonly threads: readonly PlayedTally[] }> {
    const answer = await this.#process.request({ cmd: 'finish' }, 'finished', ANSWER_MARGIN_MS)
    return answer as unknown as { threads: PlayedTally[] } // As the generator's README has it; both are of one repository.
  }

  /** Ends the process; resolves when it is gone. Idempotent. */
  async stop(): Promise<void> {
    await this.#process.stop()
  }
}
