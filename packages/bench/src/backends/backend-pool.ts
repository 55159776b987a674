import { BackendProcess } from './backend-process.js'
import type { BackendOptions, BackendSample } from './messages.js'

/** The servers under test. */
export class BackendPool {
  readonly backends: readonly BackendProcess[]
  /** Rejects when one of the processes ends unasked; never resolves. */
  readonly failed: Promise<never>

  constructor(count: number) {
    this.backends = Array.from({ length: count }, (_, index) => new BackendProcess(index))
    this.failed = Promise.race(this.backends.map((backend) => backend.failed))
    this.failed.catch(() => undefined) // Whoever waits for something races against it; between two waits nobody does.
  }

  /** Starts all servers on free ports; resolves when they accept connections. @param optionsOf By place, from 0. */
  async start(optionsOf: (index: number) => BackendOptions): Promise<void> {
    await Promise.all(this.backends.map((backend, index) => backend.start(optionsOf(index))))
  }

  /** Resources that each uses now, in order. */
  async sample(): Promise<BackendSample[]> {
    return await Promise.all(this.backends.map((backend) => backend.sample()))
  }

  /** Ends all processes; resolves when the last is gone. Idempotent. */
  async stop(): Promise<void> {
    await Promise.all(this.backends.map((backend) => backend.stop()))
  }
}
