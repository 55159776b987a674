import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, vi } from 'vitest'
import { type Service, startPostgres } from 'webmq-services'
import { SCHEMA } from '../../../outbox-postgres/src/schema.js'
import { connect } from '../../../outbox-postgres/test/database.js'
import { createServer } from '../../src/create-server.js'
import { type CliProcess, startCli } from '../cli/process.js'

/** What a play does to the nodes, the broker and the database. */
type Fault = (system: System) => Promise<unknown>

interface System {
  readonly postgres: Service
  readonly broker: Service
  readonly nodes: Node[]
  start(): Promise<Node>
}

interface Node extends CliProcess {
  readonly port: number
}

/** Each happens while a part of the rows is inserted. */
const FAULTS: Readonly<Record<string, Fault>> = {
  'the leader is killed': async ({ nodes, start }) => {
    const leader = await leaderOf(nodes)
    leader.child.kill('SIGKILL')
    await leader.ended
    nodes.splice(nodes.indexOf(leader), 1, await start())
  },
  'the broker is killed': async ({ broker }) => {
    await broker.kill()
    await broker.restart()
  },
  'the database is killed': async ({ postgres }) => {
    await postgres.kill()
    await postgres.restart()
  },
  'the leader is stopped': async ({ nodes, start }) => {
    const leader = await leaderOf(nodes)
    leader.child.kill('SIGTERM')
    await leader.ended
    nodes.splice(nodes.indexOf(leader), 1, await start())
  },
  'the database is restarted': ({ postgres }) => postgres.restart(),
  'all at once': async (system) => {
    const kill = async (node: Node) => {
      node.child.kill('SIGKILL')
      await node.ended
    }
    await Promise.all([system.broker.kill(), system.postgres.kill(), ...system.nodes.map(kill)])
    await Promise.all([system.broker.restart(), system.postgres.restart()])
    system.nodes.splice(0, 2, await system.start(), await system.start())
  },
}

const KEYS = Array.from({ length: 20 }, (_, index) => `orders.${index}`)
const WRITER_COUNT = 4
/** Transactions of which one is rolled back. */
const ROLLBACK_SHARE = 10
const MAX_ROWS_PER_KEY = 5
const PATIENT = { timeout: 300_000, interval: 50 }

/**
 * Two nodes publish what four writers insert, while nodes, broker and database are killed. A third node, which nobody
 * kills, must get each committed row of each key once, in the order in which the transactions took turns at the key.
 */
export async function play(startBroker: () => Promise<Service>, rowCount: number): Promise<void> {
  const [broker, postgres] = await Promise.all([startBroker(), startPostgres({ isPrivate: true })])
  onTestFinished(async () => {
    await Promise.all([broker.stop(), postgres.stop()])
  })
  const admin = await connect(postgres.url)
  await admin.query(SCHEMA)
  await admin.query('CREATE TABLE counters (key text PRIMARY KEY, n int NOT NULL)')
  await admin.query('INSERT INTO counters SELECT key, 0 FROM unnest($1::text[]) AS key', [KEYS])
  const log = { historyMaxMessages: 1_000_000, historyMaxBytes: 256 * 1_048_576, dedupeMaxIds: 1_000_000 }
  const shared = { broker: broker.url, brokerNamespace: randomBytes(6).toString('hex'), ...log }
  const reader = createServer({ ...shared, port: 0, transport: 'ws', logLevel: 'silent', history: ['#=100000'] })
  onTestFinished(() => reader.stop({ drainMs: 0 }))
  await reader.start()
  const got = new Map<string, unknown[]>(KEYS.map((key) => [key, []]))
  const gaps: unknown[] = []
  const onGap = (gap: unknown) => gaps.push(gap)
  await reader.listen('orders.*', (payload, { key }) => got.get(key)?.push(payload), { onGap }).ready
  const flags = {
    ...{ broker: shared.broker, 'broker-namespace': shared.brokerNamespace, history: '#=100000', outbox: postgres.url },
    ...{ 'history-max-messages': log.historyMaxMessages, 'history-max-bytes': log.historyMaxBytes },
    ...{ 'dedupe-max-ids': log.dedupeMaxIds, 'outbox-poll': '100ms' },
  }
  const start = () => startNode(Object.entries(flags).map(([name, value]) => `--${name}=${value}`))
  const nodes = [await start(), await start()]
  const system = { postgres, broker, nodes, start }
  const share = Math.ceil(rowCount / Object.keys(FAULTS).length / WRITER_COUNT)
  for (const fault of Object.values(FAULTS)) {
    const writers = Array.from({ length: WRITER_COUNT }, () => write(postgres.url, share))
    await Promise.all([fault(system), ...writers])
  }
  const after = await connect(postgres.url)
  const { rows } = await after.query<{ key: string; n: number }>('SELECT key, n FROM counters')
  const count = rows.reduce((sum, { n }) => sum + n, 0)
  expect(count).toBeGreaterThanOrEqual(rowCount)
  await vi.waitFor(async () => {
    const { rows: left } = await after.query('SELECT count(*)::int AS count FROM webmq_outbox')
    expect(left).toEqual([{ count: 0 }])
    expect([...got.values()].reduce((sum, { length }) => sum + length, 0)).toBeGreaterThanOrEqual(count)
  }, PATIENT)
  for (const { key, n } of rows) expect(got.get(key)).toEqual(Array.from({ length: n }, (_, index) => index + 1))
  expect(gaps).toEqual([])
}

/** Inserts at least `rowCount` rows, in transactions that take turns at their keys. It outlives the database. */
async function write(url: string, rowCount: number): Promise<void> {
  const connected = () => vi.waitFor(() => connect(url), PATIENT)
  let client = await connected()
  for (let written = 0; written < rowCount; ) {
    const keys = [pick(KEYS), pick(KEYS)].sort()
    const count = 1 + Math.floor(Math.random() * MAX_ROWS_PER_KEY)
    try {
      await client.query('BEGIN')
      await client.query('SELECT FROM counters WHERE key = ANY ($1) ORDER BY key FOR UPDATE', [keys])
      const { rowCount: inserted } = await client.query(
        `INSERT INTO webmq_outbox (key, payload)
         SELECT key, to_jsonb(n + more) FROM counters, generate_series(1, $2::int) AS more WHERE key = ANY ($1)
         ORDER BY more`,
        [keys, count],
      )
      await client.query('UPDATE counters SET n = n + $2 WHERE key = ANY ($1)', [keys, count])
      const isRolledBack = Math.random() * ROLLBACK_SHARE < 1
      await client.query(isRolledBack ? 'ROLLBACK' : 'COMMIT')
      if (!isRolledBack) written += inserted ?? 0
    } catch {
      // The database is away. Whether it has committed, its counters tell.
      client = await connected()
    }
  }
}

const pick = (names: readonly string[]) => names[Math.floor(Math.random() * names.length)] ?? ''

async function startNode(flags: readonly string[]): Promise<Node> {
  const server = startCli(['--port', '0', '--transport', 'ws', ...flags])
  onTestFinished(async () => {
    server.child.kill('SIGKILL')
    await server.ended
  })
  const port = await vi.waitFor(() => {
    const [, found] = /listens on ws:\S+:(\d+)\//.exec(server.output.stdout) ?? []
    if (found === undefined) throw new Error(`not listening: ${JSON.stringify(server.output)}`)
    return Number(found)
  }, PATIENT)
  return { ...server, port }
}

async function leaderOf(nodes: readonly Node[]): Promise<Node> {
  return await vi.waitFor(async () => {
    for (const node of nodes) {
      const answer = await fetch(`http://127.0.0.1:${node.port}/ready`)
      if (((await answer.json()) as { outbox?: string }).outbox === 'leading') return node
    }
    throw new Error('no node leads')
  }, PATIENT)
}
