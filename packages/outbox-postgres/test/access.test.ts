import { randomBytes } from 'node:crypto'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { startPostgres } from 'webmq-services'
import { SCHEMA } from '../src/schema.js'
import { connect, freshDatabase, startOutbox } from './database.js'

const PATIENT = { timeout: 60_000, interval: 20 }
const INSERT = `INSERT INTO webmq_outbox (key, payload) VALUES ('a', '1')`
const RIGHTS = 'GRANT SELECT, UPDATE, DELETE ON webmq_outbox TO webmq'

/** A database whose table `webmq` may use as the documents say. In statements, `webmq` stands for a role of the test alone. */
async function databaseOf(...statements: readonly string[]) {
  const { url, client } = await freshDatabase()
  const role = `webmq_${randomBytes(6).toString('hex')}`
  const run = (statement: string) => client.query(statement.replaceAll(/\bwebmq\b/g, role))
  for (const statement of ['CREATE ROLE webmq LOGIN', RIGHTS, ...statements]) await run(statement)
  const own = Object.assign(new URL(url), { username: role }).href
  return { url: own, role, run }
}

/** What stops it, and what makes it go on. The cure that the reason names is one of both. */
const OBSTACLES: Readonly<Record<string, readonly [obstacle: readonly string[], reason: string, cure: string]>> = {
  'row-level security without a policy': [
    ['ALTER TABLE webmq_outbox ENABLE ROW LEVEL SECURITY'],
    'row-level security may hide rows of public.webmq_outbox from the user: ALTER ROLE <user> BYPASSRLS, or CREATE POLICY webmq ON public.webmq_outbox TO <user> USING (true)',
    'CREATE POLICY webmq ON public.webmq_outbox TO webmq USING (true)',
  ],
  'row-level security whose policy is of others': [
    [
      'ALTER TABLE webmq_outbox ENABLE ROW LEVEL SECURITY',
      `CREATE POLICY app ON webmq_outbox USING (current_user = 'app')`,
      'CREATE POLICY all_rows ON webmq_outbox FOR SELECT TO webmq USING (true)',
    ],
    'row-level security may hide rows',
    'ALTER ROLE webmq BYPASSRLS',
  ],
  'row-level security with a policy that restricts': [
    [
      'ALTER TABLE webmq_outbox ENABLE ROW LEVEL SECURITY',
      'CREATE POLICY webmq ON webmq_outbox TO webmq USING (true)',
      'CREATE POLICY less ON webmq_outbox AS RESTRICTIVE USING (id < 0)',
    ],
    'row-level security may hide rows',
    'DROP POLICY less ON webmq_outbox',
  ],
  'no right to delete or change': [
    ['REVOKE UPDATE, DELETE ON webmq_outbox FROM webmq'],
    'the user has no right to UPDATE, DELETE rows of public.webmq_outbox: GRANT UPDATE, DELETE ON public.webmq_outbox TO <user>',
    'GRANT UPDATE (error), DELETE ON public.webmq_outbox TO webmq',
  ],
  'read-only transactions': [
    ['ALTER ROLE webmq SET default_transaction_read_only = on'],
    'transactions of the user are read-only: ALTER ROLE <user> SET default_transaction_read_only = off',
    'ALTER ROLE webmq SET default_transaction_read_only = off',
  ],
  'a table in another schema': [
    ['CREATE SCHEMA app', 'ALTER TABLE webmq_outbox SET SCHEMA app'],
    'the search path of the user ("$user", public) has no table webmq_outbox, schema app has one: GRANT USAGE ON SCHEMA app TO <user>; ALTER ROLE <user> SET search_path = app',
    'GRANT USAGE ON SCHEMA app TO webmq; ALTER ROLE webmq SET search_path = app; SET search_path = app',
  ],
  'two tables in the search path': [
    ['CREATE SCHEMA webmq AUTHORIZATION webmq', 'CREATE TABLE webmq.webmq_outbox (LIKE webmq_outbox INCLUDING ALL)'],
    'the search path of the user has webmq_outbox in public and ***: ALTER ROLE <user> SET search_path = …',
    'ALTER ROLE webmq SET search_path = public',
  ],
  'a view': [
    ['ALTER TABLE webmq_outbox RENAME TO real', 'CREATE VIEW webmq_outbox AS SELECT * FROM real WHERE id < 0', RIGHTS],
    'public.webmq_outbox is no table, but a view or the like: ALTER ROLE <user> SET search_path = …',
    'DROP VIEW webmq_outbox; ALTER TABLE real RENAME TO webmq_outbox',
  ],
  'a part of another table': [
    [
      'ALTER TABLE webmq_outbox RENAME TO whole',
      'CREATE TABLE webmq_outbox () INHERITS (whole)',
      'GRANT SELECT, UPDATE, DELETE ON webmq_outbox, whole TO webmq',
    ],
    'public.webmq_outbox is a part of another table, whose rows would stay: ALTER ROLE <user> SET search_path = …',
    'DROP TABLE webmq_outbox; ALTER TABLE whole RENAME TO webmq_outbox',
  ],
  'missing columns': [
    ['ALTER TABLE webmq_outbox DROP COLUMN message_id, DROP COLUMN error'],
    'public.webmq_outbox lacks message_id, error: add what webmq-server outbox schema prints',
    'ALTER TABLE webmq_outbox ADD COLUMN message_id uuid NOT NULL DEFAULT gen_random_uuid(), ADD COLUMN error text',
  ],
}

// Symptom: with row-level security and no policy, a server said "leading" with a lag of 0 and published nothing, for ever. Cause:
// PostgreSQL answers with no rows and no error, and nobody asked whether all rows are seen and can be deleted.
describe('a database outbox says why it would be silent', () => {
  it.each(Object.entries(OBSTACLES))('%s', async (_, [obstacle, reason, cure]) => {
    const { url, role, run } = await databaseOf(...obstacle)
    const { outbox, lines, texts, published } = startOutbox(url)
    await vi.waitFor(() => expect(outbox.reason).toBeDefined(), PATIENT)
    expect(outbox.stats()).toMatchObject({ status: 'down' })
    expect(outbox.reason).toContain(reason)
    expect(outbox.reason).not.toContain(role)
    expect(lines[0]).toEqual({
      level: 'warn',
      fields: { reason: outbox.reason },
      message: 'the database outbox is down',
    })
    await run(cure)
    await run(INSERT)
    await published(1)
    expect(texts).toEqual(['a 1'])
    expect(outbox.stats()).toMatchObject({ status: 'leading' })
    expect(outbox.reason).toBeUndefined()
  })

  // Symptom: each row was published, and again after each window of duplicates. Cause: it was deleted only afterwards, which
  // failed, or did nothing.
  it.each([
    [
      'says so',
      'CREATE TABLE orders (id bigint REFERENCES webmq_outbox)',
      `INSERT INTO orders VALUES (1)`,
      /foreign key/,
    ],
    [
      'does nothing',
      'CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$',
      'CREATE TRIGGER keep BEFORE DELETE ON webmq_outbox FOR EACH ROW EXECUTE FUNCTION keep()',
      /row 1 cannot be deleted: look for triggers and rules of webmq_outbox/,
    ],
  ])('publishes no row that stays, when its removal %s', async (_, before, after, reason) => {
    const { url, run } = await databaseOf(before, INSERT, after)
    const { outbox, texts } = startOutbox(url)
    await vi.waitFor(() => expect(outbox.reason).toMatch(reason), PATIENT)
    expect(outbox.status).toBe('down')
    expect(texts).toEqual([])
    expect((await run('SELECT FROM webmq_outbox')).rowCount).toBe(1)
  })

  it('a replica, which gives out the lock and takes no writes', async () => {
    const postgres = await startPostgres({ isPrivate: true })
    onTestFinished(() => postgres.stop())
    const client = await connect(postgres.url)
    await client.query(SCHEMA)
    const { rows } = await client.query<{ folder: string }>(`SELECT current_setting('data_directory') AS folder`)
    await client.query(`COPY (SELECT) TO '${rows[0]?.folder}/standby.signal'`)
    await postgres.restart()
    const { outbox } = startOutbox(postgres.url)
    await vi.waitFor(() => expect(outbox.reason).toContain('the address leads to a replica'), PATIENT)
    await (await connect(postgres.url)).query('SELECT pg_promote()')
    await vi.waitFor(() => expect(outbox.status).toBe('leading'), PATIENT)
  })

  it('looks again while the table seems to be empty', async () => {
    const { url, run } = await databaseOf()
    const { outbox, becomes, published } = startOutbox(url, undefined, { checkMs: 100 })
    await becomes('leading')
    await run('ALTER TABLE webmq_outbox ENABLE ROW LEVEL SECURITY')
    await run(INSERT)
    await becomes('down')
    expect(outbox.reason).toContain('row-level security')
    await run('ALTER TABLE webmq_outbox DISABLE ROW LEVEL SECURITY')
    await published(1)
  })
})
