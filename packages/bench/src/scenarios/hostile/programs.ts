import { fileURLToPath } from 'node:url'
import type { AttackCommand, Attacked, ProbeCommand, ProbeConnectCommand, Probed } from '../../hostile/messages.js'
import { LineProcess } from '../../loadgen/line-process.js'

const READY_TIMEOUT_MS = 10_000
const CONNECT_TIMEOUT_MS = 30_000
/** Above the prober's own limits for late answers. */
const ANSWER_MARGIN_MS = 40_000

/** The processes beside the load generator: honest clients that ask, and hostile clients. */
export class HostilePrograms {
  readonly #prober = processOf('the prober', 'prober-process.js')
  readonly #hostile = processOf('the process of hostile clients', 'attack-process.js')

  async ready(): Promise<void> {
    await Promise.all([this.#prober, this.#hostile].map((program) => program.next('ready', READY_TIMEOUT_MS)))
  }

  async connect(options: Omit<ProbeConnectCommand, 'cmd'>): Promise<void> {
    await this.#prober.request({ cmd: 'connect', ...options }, 'connected', CONNECT_TIMEOUT_MS)
  }

  async probe(options: Omit<ProbeCommand, 'cmd'>): Promise<Probed> {
    const limitMs = options.durationMs + ANSWER_MARGIN_MS
    return (await this.#prober.request({ cmd: 'probe', ...options }, 'probed', limitMs)) as unknown as Probed
  }

  async attack(options: Omit<AttackCommand, 'cmd'>): Promise<Attacked> {
    const limitMs = options.durationMs + ANSWER_MARGIN_MS
    return (await this.#hostile.request({ cmd: 'attack', ...options }, 'attacked', limitMs)) as unknown as Attacked
  }

  /** Ends both; resolves when they are gone. Idempotent. */
  async stop(): Promise<void> {
    await Promise.all([this.#prober.stop(), this.#hostile.stop()])
  }
}

function processOf(title: string, script: string): LineProcess {
  const file = fileURLToPath(new URL(`../../hostile/${script}`, import.meta.url))
  return new LineProcess({ title, command: process.execPath, args: [file], hasIds: false })
}
