import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { WebMQError } from 'webmq-client/protocol'
import { deferred } from 'webmq-server/brokers'
import { makeCertificate, startFaultProxy, startPostgres } from 'webmq-services'
import { SCHEMA } from '../src/schema.js'
import { connect, freshDatabase, startOutbox } from './database.js'

const UNAVAILABLE = new WebMQError('E_BROKER_UNAVAILABLE')
const insert = (key: string, payload: unknown) =>
  `INSERT INTO webmq_outbox (key, payload) VALUES ('${key}', '${JSON.stringify(payload)}')`
const PATIENT = { timeout: 60_000, interval: 20 }

describe('the database outbox', () => {
  it('publishes what a transaction has inserted at its commit, and nothing of one that is rolled back', async () => {
    const { url, client } = await freshDatabase()
    const { texts, published } = startOutbox(url)
    await client.query('BEGIN')
    await client.query(insert('orders.1', 'lost'))
    await client.query('ROLLBACK')
    await client.query('BEGIN')
    await client.query(`INSERT INTO webmq_outbox (key, payload) VALUES ('orders.2', '{"n": 12345678901234567890}')`)
    await (await connect(url)).query(insert('orders.3', 'first'))
    await published(1)
    await client.query('COMMIT')
    await client.query(`INSERT INTO webmq_outbox (key, bytes) VALUES ('orders.4', 'bytes')`)
    await published(3)
    // Numbers keep all their digits.
    expect(texts).toEqual(['orders.3 "first"', 'orders.2 {"n": 12345678901234567890}', 'orders.4 bytes'])
    await vi.waitFor(async () => expect((await client.query('SELECT FROM webmq_outbox')).rowCount).toBe(0), PATIENT)
  })

  it('does so without the trigger, at its interval', async () => {
    const { url, client } = await freshDatabase()
    await client.query('DROP TRIGGER webmq_outbox_notify ON webmq_outbox')
    const { becomes, published } = startOutbox(url)
    await becomes('leading')
    await client.query(insert('a', 1))
    await published(1)
  })

  it('is woken by the commit', async () => {
    const { url, client } = await freshDatabase()
    const { becomes, published } = startOutbox(url, undefined, { pollMs: 3_600_000 })
    await becomes('leading')
    for (let count = 1; count < 6; count++) {
      await client.query(insert('a', count))
      await published(count)
    }
  })

  // Symptom: an order whose message had a NUL, or half an emoji, was rolled back. Cause: jsonb takes neither, and it sorts the
  // names of an object.
  it('publishes the JSON text that was inserted, byte for byte', async () => {
    const { url, client } = await freshDatabase()
    const { texts, published } = startOutbox(url)
    const payloads = [
      String.raw`"\u0000"`,
      String.raw`"half \ud83d"`,
      String.raw`{"\u0000": "\udc00", "b": 1,  "a": 1, "a": 1724442618569203714}`,
      ' [1e400, -0, 1.0, 12345678901234567890.10]\n',
      '"\u007f\u2028😀"',
    ]
    for (const [index, payload] of payloads.entries()) {
      await client.query(`INSERT INTO webmq_outbox (key, payload) VALUES ('a', $1)`, [payload])
      await published(index + 1)
    }
    expect(texts).toEqual(payloads.map((payload) => `a ${payload}`))
  })

  it('goes on with a table of jsonb, and after its change', async () => {
    const { url, client } = await freshDatabase(SCHEMA.replace('payload json,', 'payload jsonb,'))
    const { texts, published } = startOutbox(url)
    await client.query(insert('a', { b: 1, a: 2 }))
    await published(1)
    // Nothing of the schema changes a table.
    await client.query(SCHEMA)
    await client.query('ALTER TABLE webmq_outbox ALTER COLUMN payload TYPE json USING payload::json')
    await client.query(String.raw`INSERT INTO webmq_outbox (key, payload) VALUES ('a', '"\u0000"')`)
    await client.query(`INSERT INTO webmq_outbox (key, payload) VALUES ('a', '{"a":2}'::jsonb)`)
    await published(3)
    expect(texts).toEqual(['a {"a": 2, "b": 1}', String.raw`a "\u0000"`, 'a {"a": 2}'])
    await expect(client.query(`INSERT INTO webmq_outbox (key) VALUES ('a')`)).rejects.toThrow('payload_or_bytes')
  })

  it('keeps the order of transactions that took turns at a key, whichever began first', async () => {
    const { url, client: other } = await freshDatabase()
    const [early, late] = [await connect(url), await connect(url)]
    await other.query('CREATE TABLE things (name text)')
    // The numbers of transactions are given at their first change: early, other, late.
    for (const client of [early, other]) {
      await client.query('BEGIN')
      await client.query(`INSERT INTO things VALUES ('one')`)
    }
    await late.query(insert('a', 'first'))
    await early.query(insert('a', 'second'))
    await early.query('COMMIT')
    const { texts, published } = startOutbox(url)
    await published(2)
    await other.query(insert('a', 'third'))
    await other.query('COMMIT')
    await published(3)
    expect(texts).toEqual(['a "first"', 'a "second"', 'a "third"'])
  })

  it('has one message of a key on its way at a time, and all keys at once', async () => {
    const { url, client } = await freshDatabase()
    const { promise, resolve } = deferred<void>()
    const begun: string[] = []
    const { texts, published } = startOutbox(url, (_, text) => {
      begun.push(text)
      return text === '1' ? promise : undefined
    })
    await client.query(`${insert('a', 1)}, ('a', '2'), ('b', '3'), ('b', '4')`)
    await published(2)
    expect(begun).toEqual(['1', '3', '4'])
    resolve()
    await published(4)
    expect(texts).toEqual(['b 3', 'b 4', 'a 1', 'a 2'])
  })

  it('waits with the later rows of a key while the broker is away', async () => {
    const { url, client } = await freshDatabase()
    let refusals = 2
    const { texts, published } = startOutbox(url, (_, text) => {
      if (text === '1' && refusals-- > 0) throw UNAVAILABLE
    })
    await client.query(`${insert('a', 1)}, ('a', '2'), ('b', '3')`)
    await published(3)
    expect(texts).toEqual(['b 3', 'a 1', 'a 2'])
  })

  it('sets aside what cannot be published, says why, and publishes it when its error is removed', async () => {
    const { url, client } = await freshDatabase()
    let isFull = true
    const { outbox, lines, published } = startOutbox(url, (_, text) => {
      if (text === '"state"' && isFull) throw new WebMQError('E_STATE_LIMIT')
    })
    await client.query(`${insert('bad key', 1)}, ('a', '"state"'), ('a', to_jsonb(repeat('x', 1000))), ('a', '2')`)
    await client.query(`INSERT INTO webmq_outbox (key, payload) VALUES (repeat('k', 5000), '1')`)
    await published(1)
    const failed = () => client.query('SELECT error FROM webmq_outbox ORDER BY id').then(({ rows }) => rows)
    await vi.waitFor(async () => {
      expect(await failed()).toEqual([
        { error: expect.stringMatching(/^E_KEY_INVALID: key is not valid: space/) },
        { error: 'E_STATE_LIMIT: too many keys are retained' },
        { error: 'E_PAYLOAD_TOO_LARGE: payload exceeds the limit: 1002 bytes, at most 1000' },
        { error: expect.stringMatching(/^E_KEY_INVALID: key is not valid: longer/) },
      ])
    }, PATIENT)
    await vi.waitFor(() => expect(outbox.stats()).toMatchObject({ failedCount: 4, failedRowCount: 4 }), PATIENT)
    expect(lines).toContainEqual(expect.objectContaining({ message: 'a row of the database cannot be published' }))
    isFull = false
    await client.query(`UPDATE webmq_outbox SET error = NULL WHERE error LIKE 'E_STATE%'`)
    await published(2)
  })

  it('reads no more bytes at once than its limit, and a row of any size', async () => {
    const { url, client } = await freshDatabase()
    let pendingBytes = 0
    let mostBytes = 0
    const { published } = startOutbox(
      url,
      async (_, { length }) => {
        pendingBytes += length
        mostBytes = Math.max(mostBytes, pendingBytes)
        await sleep(1)
        pendingBytes -= length
      },
      { maxBatchBytes: 1_024 },
    )
    await client.query(
      `INSERT INTO webmq_outbox (key, bytes)
       SELECT 'k' || n, convert_to(repeat('x', CASE n % 5 WHEN 0 THEN 1000 ELSE 300 END), 'UTF8') FROM generate_series(1, 100) n`,
    )
    await published(100)
    expect(mostBytes).toBeLessThanOrEqual(2_023)
  })

  it('publishes a row again with its id when the database is lost before the row is deleted', async () => {
    const { url, client } = await freshDatabase()
    const ids: string[] = []
    const { outbox, published } = startOutbox(url, async ({ messageId }) => {
      ids.push(messageId)
      if (ids.length === 1) await endSessions(client)
    })
    await client.query(insert('a', 1))
    await published(2)
    expect(ids[1]).toBe(ids[0])
    await vi.waitFor(() => expect(outbox.stats()).toMatchObject({ status: 'leading', lostCount: 1 }), PATIENT)
  })

  it('gives another row another id, also when a table is emptied and its ids begin again', async () => {
    const { url, client } = await freshDatabase()
    const ids: string[] = []
    const { published } = startOutbox(url, ({ messageId }) => ids.push(messageId))
    await client.query(insert('a', 1))
    await published(1)
    await client.query('TRUNCATE webmq_outbox RESTART IDENTITY')
    await client.query(insert('a', 1))
    await published(2)
    expect(new Set(ids).size).toBe(2)
  })

  it('has one leader, whose end makes another one lead', async () => {
    const { url, client } = await freshDatabase()
    const first = startOutbox(url)
    await first.becomes('leading')
    const second = startOutbox(url)
    await second.becomes('waiting')
    await client.query(insert('a', 1))
    await first.published(1)
    await first.outbox.stop(1_000)
    await second.becomes('leading')
    await client.query(insert('a', 2))
    await second.published(1)
    expect([first.texts, second.texts]).toEqual([['a 1'], ['a 2']])
  })

  it('publishes nothing after its link has been silent, when PostgreSQL lets another one lead', async () => {
    const { url, client } = await freshDatabase()
    const proxy = await startFaultProxy({ url })
    onTestFinished(() => proxy.stop())
    const { promise, resolve } = deferred<void>()
    const began = deferred<void>()
    const silent = startOutbox(proxy.url, (_, text) => {
      if (text !== '1') return undefined
      began.resolve()
      return promise
    })
    await silent.becomes('leading')
    await client.query(`${insert('a', 1)}, ('a', '2')`)
    await began.promise
    const other = startOutbox(url)
    await other.becomes('waiting')
    await proxy.swallow()
    await other.becomes('leading')
    await other.published(2)
    resolve()
    await silent.published(1)
    await silent.becomes('down')
    expect([silent.texts, other.texts]).toEqual([['a 1'], ['a 1', 'a 2']])
  })

  it('says what is missing, and begins when it is there', async () => {
    const { url, client } = await freshDatabase('SELECT 1')
    const { lines, becomes, published } = startOutbox(url)
    await vi.waitFor(() => expect(lines).not.toEqual([]), PATIENT)
    expect(lines[0]).toMatchObject({
      level: 'warn',
      fields: { reason: 'it has no table: run webmq-server outbox schema | psql' },
      message: 'the database outbox is down',
    })
    await client.query(SCHEMA)
    await client.query(insert('a', 1))
    // A second time it changes nothing.
    await client.query(SCHEMA)
    await becomes('leading')
    await published(1)
  })

  it('speaks TLS, with a certificate that is verified', async () => {
    const certificate = await makeCertificate({ names: ['127.0.0.1'] })
    const postgres = await startPostgres({ tls: certificate })
    onTestFinished(() => postgres.stop())
    await (await connect(postgres.url)).query(SCHEMA)
    const authority = async (name: string, { cert } = certificate) => {
      const file = join(tmpdir(), `webmq-${process.pid}-${name}.pem`)
      await writeFile(file, cert)
      return `${postgres.url}?sslmode=verify-full&sslrootcert=${file}`
    }
    const { becomes } = startOutbox(await authority('right'))
    await becomes('leading')
    const { rows } = await (await connect(postgres.url)).query(
      `SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'webmq-outbox'`,
    )
    expect(rows).toEqual([{ ssl: true }])
    const { lines } = startOutbox(await authority('wrong', await makeCertificate({ names: ['127.0.0.1'] })))
    await vi.waitFor(() => expect(JSON.stringify(lines)).toMatch(/self-signed|certificate/), PATIENT)
  })
})

async function endSessions(client: { query(text: string): Promise<unknown> }): Promise<void> {
  await client.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE application_name = 'webmq-outbox' AND datname = current_database()`,
  )
}
