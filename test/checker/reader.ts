import type { ActorOptions } from './actor.js'

export interface ReaderOptions extends ActorOptions {
  readonly keys: readonly string[]
  /** Pause between two reads. Default 200. */
  readonly everyMs?: number
}

/** Reads the history of its keys, with every combination of options, and follows pages to their end. */
export class Reader {
  constructor(_options: ReaderOptions) {
    throw new Error('not written yet')
  }

  /** Begins to read. */
  start(): void {
    throw new Error('not written yet')
  }

  /** Closes its connection. */
  async stop(): Promise<void> {
    throw new Error('not written yet')
  }
}
