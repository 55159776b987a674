import type { OutboxDriver } from 'webmq-server/outbox'
import { PostgresOutbox } from './outbox.js'
import { SCHEMA } from './schema.js'

/** Rows of a table of PostgreSQL 13 or newer, for `--outbox postgres://…`. */
export const postgresOutbox: OutboxDriver = {
  outboxVersion: 1,
  schema: SCHEMA,
  create: (context) => new PostgresOutbox(context),
}
