import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { postgresOutbox } from 'webmq-outbox-postgres'
import { freshDatabase } from '../../../outbox-postgres/test/database.js'
import { createServer } from '../../src/create-server.js'
import { runCli } from '../cli/process.js'

const insert = (key: string, payload: unknown) =>
  `INSERT INTO webmq_outbox (key, payload) VALUES ('${key}', '${JSON.stringify(payload)}')`
const PATIENT = { timeout: 60_000, interval: 20 }

describe('a server with a database outbox', () => {
  it('publishes as itself, and tells operators', async () => {
    const { url, client } = await freshDatabase()
    const server = createServer({ port: 0, transport: 'ws', logLevel: 'silent', outbox: { url } })
    onTestFinished(() => server.stop({ drainMs: 0 }))
    const { port } = await server.start()
    const got: unknown[] = []
    await server.listen('orders.*', (payload, { key }) => got.push({ key, payload })).ready
    await client.query(insert('orders.1', { total: 3 }))
    await vi.waitFor(() => expect(got).toEqual([{ key: 'orders.1', payload: { total: 3 } }]), PATIENT)
    const get = async (path: string) => await (await fetch(`http://127.0.0.1:${port}${path}`)).text()
    expect(JSON.parse(await get('/ready'))).toMatchObject({ status: 'ready', outbox: 'leading' })
    const metrics = (await get('/metrics')).split('\n').filter((line) => line.startsWith('webmq_outbox_'))
    expect(metrics).toEqual(
      expect.arrayContaining([
        'webmq_outbox_status{status="leading"} 1',
        'webmq_outbox_status{status="down"} 0',
        'webmq_outbox_published_total 1',
        // Measured every few seconds.
        expect.stringMatching(/^webmq_outbox_rows [01]$/),
        expect.stringMatching(/^webmq_outbox_lag_seconds \d/),
      ]),
    )
  })

  // 100,000 levels are more than PostgreSQL reads, so the application's transaction fails; as bytes they are any bytes.
  it('publishes deep and long JSON, and lives', async () => {
    const { url, client } = await freshDatabase()
    const options = { maxPayloadBytes: 2_097_152, maxOutboxBytes: 4_194_304, history: ['#=100'] }
    const server = createServer({ port: 0, transport: 'ws', logLevel: 'silent', outbox: { url }, ...options })
    onTestFinished(() => server.stop({ drainMs: 0 }))
    await server.start()
    const got: string[] = []
    await server.listen('end', (payload) => got.push(String(payload))).ready
    const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
    const long = JSON.stringify(Array(500_000).fill(1))
    const publish = (column: string, text: string) =>
      client.query(`INSERT INTO webmq_outbox (key, ${column}) VALUES ('a', $1)`, [text])
    await expect(publish('payload', deep(100_000))).rejects.toThrow('stack depth limit')
    await publish('payload', deep(5_000))
    await publish('payload', long)
    await publish('bytes', deep(100_000))
    await client.query(insert('end', 'the last one'))
    await vi.waitFor(() => expect(got).toEqual(['the last one']), PATIENT)
    await vi.waitFor(async () => expect((await client.query('SELECT FROM webmq_outbox')).rowCount).toBe(0), PATIENT)
  })

  it('needs TLS to another machine, or insecure', () => {
    const other = 'postgres://webmq@db.example/app'
    const urls = [other, `${other}?sslmode=prefer`, `${other}?sslmode=require&sslmode=disable`, `${other}?ssl=true`]
    const hidden = ['postgres://webmq@localhost/app?host=db.example', 'postgres:///app']
    for (const url of [...urls, `${other}?sslmode=no-verify`, ...hidden])
      expect(() => createServer({ outbox: { url } })).toThrow(
        expect.objectContaining({ code: 'E_INSECURE', message: expect.stringContaining('add sslmode=verify-full') }),
      )
    const local = ['127.0.0.1', '127.1.2.3:5433', '[::1]', 'localhost', '%2Fvar%2Frun%2Fpostgresql']
    const encrypted = ['require', 'verify-ca', 'verify-full'].map((mode) => `${other}?sslmode=${mode}`)
    const sockets = [`postgres:///app?host=/var/run/postgresql`, `${other}?host=127.0.0.1`]
    for (const url of [...local.map((host) => `postgres://webmq@${host}/app`), ...encrypted, ...sockets])
      createServer({ outbox: { url } })
    createServer({ outbox: { url: other }, insecure: true })
  })

  it('refuses an address that is none', () => {
    for (const url of ['mysql://db/app', 'postgres://', ''])
      expect(() => createServer({ outbox: { url } })).toThrow('postgres://…')
    expect(() => createServer({ outbox: {} as { url: string } })).toThrow('outbox: needs outbox.url (--outbox)')
  })

  it('is ready without its database, and says why', async () => {
    const { url } = await freshDatabase('SELECT 1')
    const server = createServer({ port: 0, transport: 'ws', logLevel: 'silent', outbox: { url } })
    onTestFinished(() => server.stop({ drainMs: 0 }))
    const { port } = await server.start()
    const get = async (path: string) => await (await fetch(`http://127.0.0.1:${port}${path}`)).text()
    const outboxReason = 'it has no table: run webmq-server outbox schema | psql'
    for (const path of ['/ready', '/health'])
      await vi.waitFor(
        async () => expect(JSON.parse(await get(path))).toMatchObject({ outbox: 'down', outboxReason }),
        PATIENT,
      )
    expect(JSON.parse(await get('/ready'))).toMatchObject({ status: 'ready' })
    expect(await get('/metrics')).toContain('webmq_outbox_status{status="down"} 1')
  })

  it('prints the statements of its table', async () => {
    expect((await runCli(['outbox', 'schema'])).stdout).toBe(postgresOutbox.schema)
  })
})
