import { WebMQError } from 'webmq-client/protocol'
import { type Backlog, reasonOf } from 'webmq-server/outbox'
import { TABLE } from './schema.js'
import type { DatabaseSession } from './session.js'

export interface OutboxRow {
  /** A whole number of 64 bits, as text. */
  readonly id: string
  readonly messageId: string
  /** Its first 256 characters: no longer key is valid. */
  readonly key: string
  readonly byteCount: number
  /** The JSON text; both are `null` when it is larger than the largest payload. */
  readonly json: string | null
  readonly bytes: Buffer | null
}

/** How many rows are read at once. */
export interface BatchLimits {
  readonly maxRows: number
  /** At least one row is read, whatever its size. */
  readonly maxBytes: number
  readonly maxPayloadBytes: number
}

/** The broker is away or busy. All other errors are of the row. */
const PASSING: ReadonlySet<string> = new Set(['E_BROKER_UNAVAILABLE', 'E_NODE_BEHIND', 'E_TIMEOUT'])
const MAX_COUNT = 100_000

/**
 * A snapshot that sees a transaction sees all that committed before it, and ids grow in the order of the inserts. So a row
 * that was inserted after the commit of another one is never read before it.
 */
const READ = `
SELECT id, message_id AS "messageId", key, size AS "byteCount",
  CASE WHEN size <= $2 THEN json END AS json, CASE WHEN size <= $2 THEN bytes END AS bytes
FROM (
  SELECT id, message_id, left(key, 256) AS key, json, bytes, size,
    sum(least(size, $2)) OVER (ORDER BY id) - least(size, $2) AS before
  FROM (SELECT * FROM ${TABLE} WHERE error IS NULL ORDER BY id LIMIT $1) AS first,
    LATERAL (SELECT payload::text AS json OFFSET 0) AS text,
    LATERAL (SELECT coalesce(octet_length(bytes), octet_length(json)) AS size) AS sized
) AS summed
WHERE before < $3 ORDER BY id`

const MEASURE = `
SELECT
  (SELECT count(*)::int FROM (SELECT FROM ${TABLE} WHERE error IS NULL LIMIT ${MAX_COUNT}) AS counted) AS "rowCount",
  (SELECT count(*)::int FROM (SELECT FROM ${TABLE} WHERE error IS NOT NULL LIMIT ${MAX_COUNT}) AS counted)
    AS "failedRowCount",
  coalesce((SELECT extract(epoch FROM clock_timestamp() - created_at)::float8
    FROM ${TABLE} WHERE error IS NULL ORDER BY id LIMIT 1), 0) AS "lagSeconds"`

export async function readRows(session: DatabaseSession, limits: BatchLimits): Promise<OutboxRow[]> {
  return await session.query<OutboxRow>(READ, [limits.maxRows, limits.maxPayloadBytes, limits.maxBytes])
}

/** @throws also when PostgreSQL says that all is well and rows stay, as a trigger or a rule makes it. */
export async function deleteRows(session: DatabaseSession, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  const gone = await session.query(`DELETE FROM ${TABLE} WHERE id = ANY ($1::bigint[]) RETURNING id`, [ids])
  if (gone.length === ids.length) return
  // Somebody else may have deleted them before.
  const [left] = await session.query<{ id: string }>(`SELECT id FROM ${TABLE} WHERE id = ANY ($1::bigint[]) LIMIT 1`, [
    ids,
  ])
  if (left !== undefined) throw new Error(`row ${left.id} cannot be deleted: look for triggers and rules of ${TABLE}`)
}

/** Deletes rows and takes it back, before any is published: one that stays would be published again and again. */
export async function tryToDelete(session: DatabaseSession, rows: readonly OutboxRow[]): Promise<void> {
  await session.query('BEGIN')
  try {
    await session.query('SET CONSTRAINTS ALL IMMEDIATE')
    await deleteRows(
      session,
      rows.map(({ id }) => id),
    )
  } finally {
    await session.query('ROLLBACK')
  }
}

/** Sets rows aside, with the reason. */
export async function failRows(session: DatabaseSession, failures: readonly Failure[]): Promise<void> {
  if (failures.length === 0) return
  await session.query(
    `UPDATE ${TABLE} SET error = failed.error FROM unnest($1::bigint[], $2::text[]) AS failed (id, error)
     WHERE ${TABLE}.id = failed.id`,
    [failures.map(({ row }) => row.id), failures.map(({ error }) => error)],
  )
}

export async function measureRows(session: DatabaseSession): Promise<Backlog | undefined> {
  return (await session.query<Backlog>(MEASURE))[0]
}

/** A row that cannot be published, however often it is tried. */
export interface Failure {
  readonly row: OutboxRow
  readonly error: string
}

/** What became of rows. Those that are in no list wait. */
export interface Published {
  readonly ids: string[]
  readonly failures: Failure[]
  cause?: unknown
}

/**
 * Publishes rows: those of a key one after the other, each once the broker has accepted the one before it, and all keys at
 * the same time. While the broker is away, the later rows of the key wait: none overtakes another.
 * @param mayGoOn Asked before each row.
 */
export async function publishRows(
  rows: readonly OutboxRow[],
  publish: (row: OutboxRow) => unknown,
  mayGoOn: () => boolean,
): Promise<Published> {
  const published: Published = { ids: [], failures: [] }
  const byKey = new Map<string, OutboxRow[]>()
  for (const row of rows) {
    const chain = byKey.get(row.key)
    if (chain === undefined) byKey.set(row.key, [row])
    else chain.push(row)
  }
  const publishChain = async (chain: readonly OutboxRow[]) => {
    for (const row of chain) {
      if (!mayGoOn()) return
      try {
        await publish(row)
        published.ids.push(row.id)
      } catch (error) {
        const code = error instanceof WebMQError ? error.code : 'E_INTERNAL'
        if (PASSING.has(code)) {
          published.cause ??= error
          return
        }
        published.failures.push({ row, error: `${code}: ${reasonOf(error)}` })
      }
    }
  }
  await Promise.all([...byKey.values()].map(publishChain))
  return published
}
