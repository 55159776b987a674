import { spawnSync } from 'node:child_process'
import { expect, it, onTestFinished, vi } from 'vitest'
import { blocksFor } from '../../../../test/docs/examples.js'
import { Machine } from '../../../../test/docs/machine.js'
import { commandsOf, isExcused } from '../../../../test/docs/reasons.js'
import { freshDatabase } from '../../../outbox-postgres/test/database.js'
import { createServer } from '../../src/create-server.js'
import { givenOptions } from '../cli/given-options.js'

const PATIENT = { timeout: 60_000, interval: 20 }
const { exampleOf } = blocksFor(import.meta.url)
const [setup, json, grants, transaction, failed] = ['setup', 'json', 'grants', 'transaction', 'failed-rows'].map(
  (name) => exampleOf('database-outbox.md', name),
)
const policy = exampleOf('packages/outbox-postgres/README.md', 'policy')
const psql = spawnSync('psql', ['--version']).error

it.skipIf(psql !== undefined)(
  'docs/database-outbox.md: the table is made, a row is published, one that fails is seen',
  async () => {
    const { url, client } = await freshDatabase('SELECT 1')
    const machine = new Machine({})
    onTestFinished(() => machine.remove())
    machine.write({ 'run/secrets/webmq-outbox': url })
    const commands = setup ? commandsOf(setup).filter((command) => !isExcused(setup, command)) : []
    const { servers } = await machine.run(commands.join('\n').replaceAll('postgres://admin@db.example/app', url))
    await machine.run(commands[0]?.replaceAll('postgres://admin@db.example/app', url) ?? '')

    // Roles belong to the whole installation, which other tests share.
    await client.query('BEGIN; CREATE ROLE app; CREATE ROLE webmq;')
    for (const example of [json, grants, policy]) await client.query(example?.code ?? '')
    await client.query('ROLLBACK')

    const [started] = servers
    const server = createServer({ ...givenOptions(started?.args ?? []), port: 0, logLevel: 'silent' })
    onTestFinished(() => server.stop({ drainMs: 0 }))
    const messages: unknown[] = []
    server.listen('orders.*', (payload, { key }) => void messages.push([key, payload]))
    await server.start()
    await client.query('CREATE TABLE orders (id int, total int)')
    await client.query(transaction?.code ?? '')
    await vi.waitFor(() => expect(messages).toEqual([['orders.42', { total: 99 }]]), PATIENT)

    await client.query(
      `INSERT INTO webmq_outbox (id, key, payload) OVERRIDING SYSTEM VALUE VALUES (7, 'a bad key', '1')`,
    )
    const [select = '', retry = '', remove = ''] = failed?.code.split('\n') ?? []
    await vi.waitFor(async () => {
      expect((await client.query(select)).rows).toEqual([{ id: '7', key: 'a bad key', error: expect.any(String) }])
    }, PATIENT)
    expect((await client.query(retry)).rowCount).toBe(1)
    expect((await client.query(remove)).rowCount).toBe(0)
  },
  120_000,
)
