import { TABLE } from './schema.js'
import type { DatabaseSession } from './session.js'

const COLUMNS = ['id', 'key', 'payload', 'bytes', 'message_id', 'created_at', 'error']

/**
 * What PostgreSQL answers without an error, although no row would ever be seen or deleted. A policy shows all rows only if
 * it is `true`: whether any other one does cannot be known.
 */
const LOOK = `
WITH found AS (SELECT to_regclass('${TABLE}') AS oid),
places AS (SELECT pg_class.oid, nspname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
  WHERE relname = '${TABLE}'),
policies AS (SELECT polpermissive, polcmd,
    pg_get_expr(polqual, polrelid) = 'true' AND coalesce(pg_get_expr(polwithcheck, polrelid), 'true') = 'true' AS "showsAll"
  FROM pg_policy JOIN found ON polrelid = found.oid
  WHERE EXISTS (SELECT FROM unnest(polroles) AS role WHERE role = 0 OR pg_has_role(role, 'USAGE')))
SELECT
  current_setting('search_path') AS "searchPath",
  pg_is_in_recovery() AS "isReplica",
  current_setting('transaction_read_only')::bool AS "isReadOnly",
  (SELECT quote_ident(nspname) FROM places WHERE places.oid = found.oid) || '.${TABLE}' AS name,
  (SELECT relkind FROM pg_class WHERE pg_class.oid = found.oid) AS kind,
  EXISTS (SELECT FROM pg_inherits WHERE inhrelid = found.oid) AS "isPart",
  ARRAY(SELECT quote_ident(nspname) FROM places WHERE nspname = ANY (current_schemas(true)) ORDER BY 1) AS "schemas",
  ARRAY(SELECT quote_ident(nspname) FROM places WHERE nspname <> ALL (current_schemas(true)) ORDER BY 1)
    AS "otherSchemas",
  ARRAY(SELECT name FROM unnest('{${COLUMNS}}'::text[]) AS name WHERE NOT EXISTS (
    SELECT FROM pg_attribute WHERE attrelid = found.oid AND attname = name AND attnum > 0 AND NOT attisdropped))
    AS "missingColumns",
  ARRAY(SELECT name FROM (VALUES
    ('SELECT', has_table_privilege(found.oid, 'SELECT')),
    -- Of the column error is enough.
    ('UPDATE', has_any_column_privilege(found.oid, 'UPDATE')),
    ('DELETE', has_table_privilege(found.oid, 'DELETE'))) AS rights (name, "isGiven") WHERE NOT "isGiven")
    AS "missingRights",
  row_security_active(found.oid) AND (
    EXISTS (SELECT FROM unnest('{r,w,d}'::"char"[]) AS command WHERE NOT EXISTS (
      SELECT FROM policies WHERE polpermissive AND polcmd IN ('*', command) AND "showsAll"))
    OR EXISTS (SELECT FROM policies WHERE NOT polpermissive AND polcmd <> 'a' AND NOT "showsAll")) AS "hidesRows"
FROM found`

interface Seen {
  readonly searchPath: string
  readonly isReplica: boolean
  readonly isReadOnly: boolean
  /** With its schema; `null` when the search path has none. */
  readonly name: string | null
  /** `relkind` of `pg_class`. */
  readonly kind: string | null
  /** It is a partition of another table, or inherits from it. */
  readonly isPart: boolean
  /** Those of the search path that have something of the name. */
  readonly schemas: readonly string[]
  readonly otherSchemas: readonly string[]
  readonly missingColumns: readonly string[]
  readonly missingRights: readonly string[]
  readonly hidesRows: boolean | null
}

/** Ordinary and partitioned ones. */
const TABLES: ReadonlySet<string | null> = new Set(['r', 'p'])

/**
 * Looks whether each row of the table would be seen and could be deleted. Cost: one query of the catalog. Resolves with
 * the table's name and schema.
 * @throws an error that says why not, and the cure.
 */
export async function checkTable(session: DatabaseSession): Promise<string> {
  const [seen] = await session.query<Seen>(LOOK)
  const defect = seen && defectOf(seen)
  if (defect !== undefined) throw new Error(defect)
  return seen?.name ?? TABLE
}

function defectOf(seen: Seen): string | undefined {
  const { name, schemas, missingColumns, missingRights } = seen
  if (seen.isReplica) return 'the address leads to a replica, where no row can be deleted: name the primary'
  if (name === null) return absenceOf(seen)
  const choose = 'ALTER ROLE <user> SET search_path = …'
  if (schemas.length > 1) return `the search path of the user has ${TABLE} in ${schemas.join(' and ')}: ${choose}`
  if (!TABLES.has(seen.kind)) return `${name} is no table, but a view or the like: ${choose}`
  if (seen.isPart) return `${name} is a part of another table, whose rows would stay: ${choose}`
  if (missingColumns.length > 0)
    return `${name} lacks ${missingColumns.join(', ')}: add what webmq-server outbox schema prints`
  if (missingRights.length > 0) {
    const rights = missingRights.join(', ')
    return `the user has no right to ${rights} rows of ${name}: GRANT ${rights} ON ${name} TO <user>`
  }
  if (seen.isReadOnly)
    return 'transactions of the user are read-only: ALTER ROLE <user> SET default_transaction_read_only = off'
  if (seen.hidesRows !== true) return undefined
  return (
    `row-level security may hide rows of ${name} from the user: ALTER ROLE <user> BYPASSRLS, or ` +
    `CREATE POLICY webmq ON ${name} TO <user> USING (true)`
  )
}

function absenceOf({ searchPath, otherSchemas: [schema] }: Seen): string {
  if (schema === undefined) return 'it has no table: run webmq-server outbox schema | psql'
  return (
    `the search path of the user (${searchPath}) has no table ${TABLE}, schema ${schema} has one: ` +
    `GRANT USAGE ON SCHEMA ${schema} TO <user>; ALTER ROLE <user> SET search_path = ${schema}`
  )
}
