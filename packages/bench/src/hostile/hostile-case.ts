import type { HostileClient } from './hostile-client.js'

/** One way to misuse a server. */
export interface HostileCase {
  /** As given to `--case`. */
  readonly name: string
  /** What each hostile client does, as a sentence without a subject. */
  readonly does: string
  /** Options that the server needs for it. */
  readonly needs?: 'compression' | 'tokens'
  /** Most connections that one hostile client holds; default 1. */
  readonly connections?: number
  /** Plays one client until `client.isOver`. */
  attack(client: HostileClient): Promise<void>
}
