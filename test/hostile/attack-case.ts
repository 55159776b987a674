import type { Attacker } from './attacker.js'

/** A part of the server's memory that has a bound of its own. */
export type FilledPart =
  | 'outbox'
  | 'inbox'
  | 'message'
  | 'presence'
  | 'body'
  | 'log'
  | 'messageIds'
  | 'streams'
  | 'groups'
  | 'requests'

/** One way to misuse a server. */
export interface AttackCase {
  /** As given to `--case`. */
  readonly name: string
  /** What each hostile client does, as a sentence without a subject. */
  readonly does: string
  /** What the server needs for it; `proxy`: tokens too. */
  readonly needs?: 'compression' | 'proxy' | 'slow-broker' | 'tokens' | 'webhook'
  /** Most connections that one hostile client holds; default 1. */
  readonly connections?: number
  /** Parts of the server's memory that it may fill up to their bounds; everything else has to stay small. */
  readonly fills: readonly FilledPart[]
  /** Plays one client until `client.isOver`. */
  attack(client: Attacker): Promise<void>
}
