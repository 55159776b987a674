import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { addCounts, noCounts, type Published } from 'webmq-check/systems'
import { RunError } from '../../exit-codes.js'
import type { DropPlan } from './drop-plan.js'
import type { AudienceCommand, AudienceEvent, AudienceLog, AudiencePlan } from './messages.js'

const SCRIPT = fileURLToPath(new URL('./audience-process.js', import.meta.url))
const LOG_TIMEOUT_MS = 120_000
/** A process has 20,000 descriptors, and each client takes one. */
const MAX_CLIENTS_PER_PROCESS = 15_000

/** All clients, in processes of their own, because a process has few descriptors. */
export class Audience {
  readonly failed: Promise<never>
  readonly #processes: readonly ChildProcess[]
  readonly #statuses: { readyCount: number; awayCount: number; heardCount: number }[]
  readonly #plan: Omit<AudiencePlan, 'process' | 'processCount'>
  #isEnding = false
  #reject: (error: RunError) => void = () => undefined

  /** @param processCount More are started where they could not hold the clients. */
  constructor(plan: Omit<AudiencePlan, 'process' | 'processCount'>, processCount: number) {
    this.#plan = plan
    this.failed = new Promise((_, reject) => {
      this.#reject = reject
    })
    this.failed.catch(() => undefined) // Whoever waits for something races against it; between two waits nobody does.
    const count = Math.max(processCount, Math.ceil(plan.clients / MAX_CLIENTS_PER_PROCESS))
    this.#statuses = Array.from({ length: count }, () => ({ readyCount: 0, awayCount: 0, heardCount: 0 }))
    this.#processes = this.#statuses.map((_, index) => this.#start(index))
  }

  /** All listen. */
  async ready(): Promise<void> {
    const ready = this.#next('ready')
    for (const [index, child] of this.#processes.entries()) {
      const plan = { ...this.#plan, process: index, processCount: this.#processes.length }
      child.send({ type: 'plan', plan } satisfies AudienceCommand)
    }
    await ready
  }

  get readyCount(): number {
    return this.#sum('readyCount')
  }

  /** Clients that do not listen at present, as of the last 100 ms. */
  get awayCount(): number {
    return this.#sum('awayCount')
  }

  get heardCount(): number {
    return this.#sum('heardCount')
  }

  drop(drops: DropPlan): void {
    this.#post({ type: 'drops', drops })
  }

  /** Counts what came of what was published. */
  async finish(published: readonly Published[]): Promise<AudienceLog> {
    this.#isEnding = true
    const answers = this.#next('log', LOG_TIMEOUT_MS)
    this.#post({ type: 'finish', published })
    return mergeLogs((await answers).map(({ log }) => log))
  }

  async stop(): Promise<void> {
    this.#isEnding = true
    const running = this.#processes.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
    const exits = running.map((child) => once(child, 'exit'))
    for (const child of running) child.kill('SIGKILL')
    await Promise.all(exits)
  }

  #start(index: number): ChildProcess {
    const child = fork(SCRIPT, { serialization: 'advanced' })
    child.on('message', (event: AudienceEvent) => {
      if (event.type === 'status') this.#statuses[index] = event
      if (event.type === 'failed') this.#reject(new RunError(`the clients failed: ${event.reason}`))
    })
    child.once('error', (cause) => this.#reject(new RunError(`the clients failed: ${cause.message}`, { cause })))
    child.once('exit', (code, signal) => {
      if (!this.#isEnding) this.#reject(new RunError(`a process of clients ended before its time: ${signal ?? code}`))
    })
    return child
  }

  /** The next event of this type of every process. */
  async #next<Type extends AudienceEvent['type']>(
    type: Type,
    timeoutMs?: number,
  ): Promise<Extract<AudienceEvent, { type: Type }>[]> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      if (timeoutMs === undefined) return
      const error = new RunError(`the clients gave no '${type}' within ${timeoutMs / 1_000} s`)
      timer = setTimeout(() => reject(error), timeoutMs)
    })
    const events = this.#processes.map(
      (child) =>
        new Promise<Extract<AudienceEvent, { type: Type }>>((resolve) => {
          const take = (event: AudienceEvent) => {
            if (event.type !== type) return
            child.off('message', take)
            resolve(event as Extract<AudienceEvent, { type: Type }>)
          }
          child.on('message', take)
        }),
    )
    try {
      return await Promise.race([this.failed, late, Promise.all(events)])
    } finally {
      clearTimeout(timer)
    }
  }

  #post(command: AudienceCommand): void {
    for (const child of this.#processes) child.send(command)
  }

  #sum(member: 'readyCount' | 'awayCount' | 'heardCount'): number {
    return this.#statuses.reduce((total, status) => total + status[member], 0)
  }
}

function mergeLogs(logs: readonly AudienceLog[]): AudienceLog {
  const counts = noCounts()
  for (const log of logs) addCounts(counts, log.counts)
  const sum = (member: 'missingCount' | 'wholeCount' | 'cpuSeconds') =>
    logs.reduce((total, log) => total + log[member], 0)
  return {
    counts,
    awayMs: logs.flatMap(({ awayMs }) => awayMs),
    backMs: logs.flatMap(({ backMs }) => backMs),
    missingCount: sum('missingCount'),
    wholeCount: sum('wholeCount'),
    examples: logs.flatMap(({ examples }) => examples),
    cpuSeconds: sum('cpuSeconds'),
    busiestShare: Math.max(...logs.map(({ busiestShare }) => busiestShare)),
  }
}
