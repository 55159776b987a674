import type { Logger } from '../../kernel/base/logger.js'
import type { MaybePromise } from '../../kernel/base/maybe-promise.js'
import type { Accepted } from '../../kernel/ports/broker.js'

/** Version of this contract. It grows when drivers have to change. */
export const OUTBOX_VERSION = 1

/** One kind of database. */
export interface OutboxDriver {
  /**
   * The {@link OUTBOX_VERSION} that the driver is written for. It MUST be a number of the driver's own, not the constant: a
   * server with another one refuses to start.
   */
  readonly outboxVersion: typeof OUTBOX_VERSION
  /** Statements that create what is missing in a database, and change nothing that is there. */
  readonly schema: string
  /** Makes the outbox of a node. It opens no connection yet. */
  create(context: OutboxContext): DatabaseOutbox
}

/** What an outbox is made of. */
export interface OutboxContext {
  /** Address of the database, with its password. It MUST NOT be logged. */
  readonly url: string
  /** Interval at which the table is read without a notice, and at which the other nodes try to lead. */
  readonly pollMs: number
  /** Most rows that are read at once. */
  readonly maxBatchRows: number
  /** Most bytes of their payloads; at least one row is read. */
  readonly maxBatchBytes: number
  readonly maxPayloadBytes: number
  readonly logger: Pick<Logger, 'info' | 'warn'>
}

/**
 * Publishes the messages that applications insert into a table in their own transactions. Of all nodes, one does. A row is
 * deleted after the broker has accepted its message, so a crash repeats at most a batch. Of one key, one message is on its way at a
 * time, in the order of the rows.
 */
export interface DatabaseOutbox {
  readonly status: OutboxStatus
  /** Why it is `down`, once that is known; without secrets. */
  readonly reason: string | undefined
  stats(): OutboxStats
  /** Begins, and does not wait for the database. Called once. */
  start(publish: PublishRow): void
  /** Waits for what the broker has not accepted yet, then another node leads. After the limit it ends by force. */
  stop(limitMs: number): Promise<void>
}

/** `leading`: this node publishes the rows. `waiting`: another one does. `down`: the database is away, or hides rows. */
export type OutboxStatus = 'leading' | 'waiting' | 'down'

/** How far the table is behind. */
export interface Backlog {
  /** Rows that wait, at most 100,000. */
  readonly rowCount: number
  /** Age of the oldest of them; 0 without one. */
  readonly lagSeconds: number
  /** Rows with an error, at most 100,000. */
  readonly failedRowCount: number
}

/** Counters since the start. The backlog is known to the leading node alone. */
export interface OutboxStats extends Partial<Backlog> {
  readonly status: OutboxStatus
  /** Why it is `down`, once that is known; without secrets. */
  readonly reason?: string
  readonly publishedCount: number
  /** Of these: the broker knew the message. A node ended before it could delete the row. */
  readonly duplicateCount: number
  readonly failedCount: number
  /** How often the connection to the database was lost. */
  readonly lostCount: number
}

/** A row on its way to the broker. */
export interface OutboxMessage {
  /** Checked by the outbox. */
  readonly key: string
  /** At most {@link OutboxContext.maxPayloadBytes}. */
  readonly payload: Uint8Array
  readonly isBinary: boolean
  /** 1 to 64 characters of `[A-Za-z0-9_-]`, the same at each attempt: brokers drop a second message by it. */
  readonly messageId: string
}

/**
 * Publishes a message as the server. Gives the broker's answer, or a promise of it.
 * @throws {WebMQError} `E_BROKER_UNAVAILABLE`, `E_NODE_BEHIND`, `E_TIMEOUT`: the broker is away or busy, and the row waits. All
 *   other errors are of the row.
 */
export type PublishRow = (message: OutboxMessage) => MaybePromise<Accepted>
