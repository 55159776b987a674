import { ClientThreads } from '../../generator/client-threads.js'
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

/** The users and publishers, in worker threads. */
export class Crowd {
  readonly failed: Promise<never>
  readonly #threads: ClientThreads<FleetCommand, FleetEvent>
  readonly #statuses: FleetStatus[]

  constructor(plan: Omit<FleetWorkerData, 'worker'>) {
    const data = Array.from({ length: plan.workerCount }, (_, worker): FleetWorkerData => ({ ...plan, worker }))
    this.#statuses = data.map(() => NOTHING)
    const script = new URL('./clients-worker.js', import.meta.url)
    this.#threads = new ClientThreads<FleetCommand, FleetEvent>(script, data, (event, thread) => {
      if (event.type === 'status') this.#statuses[thread] = event.status
    })
    this.failed = this.#threads.failed
  }

  /** All clients, as of the last 100 ms. */
  get status(): FleetStatus {
    const all = this.#statuses
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
    this.#threads.post({ type: 'quiesce' })
  }

  /** Takes the logs and closes the clients. */
  async finish(): Promise<FleetLog> {
    return mergeLogs((await this.#threads.finish({ type: 'finish' }, 'log')).map(({ log }) => log))
  }

  async stop(): Promise<void> {
    await this.#threads.stop()
  }
}
