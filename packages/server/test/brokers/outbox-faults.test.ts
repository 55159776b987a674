import { expect, it, onTestFinished, vi } from 'vitest'
import { startPostgres, startRedis } from 'webmq-services'
import { SCHEMA } from '../../../outbox-postgres/src/schema.js'
import { connect } from '../../../outbox-postgres/test/database.js'
import { createServer } from '../../src/create-server.js'
import { play } from './outbox-play.js'

const ROW_COUNT = 2_000
const PATIENT = { timeout: 60_000 }

it('each committed row is published once and in order while nodes, Redis and PostgreSQL are killed', async () => {
  await play(() => startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] }), 5_000)
})

it('a row comes once with the embedded broker too, while PostgreSQL is killed', async () => {
  const postgres = await startPostgres({ isPrivate: true })
  onTestFinished(() => postgres.stop())
  await (await connect(postgres.url)).query(SCHEMA)
  const outbox = { url: postgres.url, maxBatchRows: 50 }
  const server = createServer({ port: 0, transport: 'ws', logLevel: 'silent', outbox })
  onTestFinished(() => server.stop({ drainMs: 0 }))
  await server.start()
  const got: unknown[] = []
  await server.listen('orders.1', (payload) => got.push(payload)).ready
  for (let from = 1; from <= ROW_COUNT; from += ROW_COUNT / 4) {
    await (await connect(postgres.url)).query(
      `INSERT INTO webmq_outbox (key, payload) SELECT 'orders.1', to_jsonb(n) FROM generate_series($1::int, $2::int) n`,
      [from, from + ROW_COUNT / 4 - 1],
    )
    await postgres.kill()
    await postgres.restart()
  }
  await vi.waitFor(() => expect(got.length).toBeGreaterThanOrEqual(ROW_COUNT), PATIENT)
  await vi.waitFor(() => expect(server.stats().outbox?.status).toBe('leading'), PATIENT)
  expect(got).toEqual(Array.from({ length: ROW_COUNT }, (_, index) => index + 1))
})
