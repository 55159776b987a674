import type { Logger } from '../base/logger.js'
import { MAX_PEERS } from './peers.js'

/** Logs once of each other node that it has other options, or is of another version. */
export class Differences {
  readonly #logger: Pick<Logger, 'warn'>
  readonly #told = new Set<string>()

  constructor(logger: Pick<Logger, 'warn'>) {
    this.#logger = logger
  }

  tell(peer: string, fields: object): void {
    if (this.#told.has(peer)) return
    // Nodes of another format are no peers, so nothing says when they are gone.
    if (this.#told.size >= MAX_PEERS) this.#told.clear()
    this.#told.add(peer)
    this.#logger.warn({ peer, ...fields }, 'another node has other options, or is of another version')
  }

  forget(peer: string): void {
    this.#told.delete(peer)
  }
}
