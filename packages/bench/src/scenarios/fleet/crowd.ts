import { Worker } from 'node:worker_threads'
import { RunError } from '../../exit-codes.js'
import { type FleetLog, mergeLogs } from './log.js'
import type { FleetCommand, FleetEvent, FleetStatus, FleetWorkerData } from './messages.js'

const NOTHING: FleetStatus = {
  readyCount: 0,
  connections: {},
  publisherConnections: {},
  deliveredCount: 0,
  pendingCount: 0,
  oldestPendingMs: 0,
  trouble: null,
}

export class Crowd {
  readonly failed: Promise<never>
  readonly #threads: readonly CrowdThread[]

  constructor(plan: Omit<FleetWorkerData, 'worker'>) {
    this.#threads = Array.from({ length: plan.workerCount }, (_, worker) => new CrowdThread({ ...plan, worker }))
    this.failed = Promise.race(this.#threads.map((thread) => thread.failed))
    this.failed.catch(() => undefined) // Whoever waits for something races against it; between two waits nobody does.
  }

  /** All clients, as of the last 100 ms. */
  get status(): FleetStatus {
    const all = this.#threads.map(({ status }) => status)
    const sum = (member: 'readyCount' | 'deliveredCount' | 'pendingCount') =>
      all.reduce((total, status) => total + status[member], 0)
    const byNode = (member: 'connections' | 'publisherConnections') => {
      const counts: Record<string, number> = {}
      for (const [node, count] of all.flatMap((status) => Object.entries(status[member])))
        counts[node] = (counts[node] ?? 0) + count
      return counts
    }
    return {
      readyCount: sum('readyCount'),
      connections: byNode('connections'),
      publisherConnections: byNode('publisherConnections'),
      deliveredCount: sum('deliveredCount'),
      pendingCount: sum('pendingCount'),
      oldestPendingMs: Math.max(...all.map((status) => status.oldestPendingMs)),
      trouble: all.find((status) => status.trouble !== null)?.trouble ?? null,
    }
  }

  /** No new message arises from now on; those that wait are still published. */
  quiesce(): void {
    for (const thread of this.#threads) thread.post({ type: 'quiesce' })
  }

  /** Takes the logs and closes the clients. */
  async finish(): Promise<FleetLog> {
    for (const thread of this.#threads) thread.post({ type: 'finish' })
    return mergeLogs(await Promise.race([this.failed, Promise.all(this.#threads.map(({ log }) => log))]))
  }

  async stop(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.stop()))
  }
}

class CrowdThread {
  readonly log: Promise<FleetLog>
  readonly failed: Promise<never>
  status: FleetStatus = NOTHING
  readonly #worker: Worker

  constructor(data: FleetWorkerData) {
    const worker = new Worker(new URL('./clients-worker.js', import.meta.url), { workerData: data })
    this.#worker = worker
    let hasLog = false
    this.log = new Promise((resolve) => {
      worker.on('message', (event: FleetEvent) => {
        if (event.type === 'status') this.status = event.status
        else {
          hasLog = true
          resolve(event.log)
        }
      })
    })
    this.failed = new Promise((_, reject) => {
      worker.once('error', (cause) => reject(new RunError(`a thread of clients failed: ${cause.message}`, { cause })))
      worker.once('exit', () => {
        if (!hasLog) reject(new RunError('a thread of clients ended before its time'))
      })
    })
    this.failed.catch(() => undefined) // Raced in Crowd; here only the rejection is held.
  }

  post(command: FleetCommand): void {
    this.#worker.postMessage(command)
  }

  async stop(): Promise<void> {
    await this.#worker.terminate()
  }
}
