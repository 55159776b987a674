import { randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'
import path from 'node:path'
import { freePort, type Service, startNats, startPostgres, startRabbitmq, startRedis } from 'webmq-services'
import { SCHEMA, TABLE } from '../../packages/outbox-postgres/src/schema.js'
import { TrafficNode } from './node.js'
import type { BrokerName } from './options.js'

const NODES_OF_A_BROKER = 2
export const LEASE_MS = 4_000
/** The log is full soon, so that it does not count as growth. */
export const LOG_BYTES = 8 * 1_048_576
const FLAGS = [
  ...['--log-level', 'warn', '--log-format', 'json', '--threads', '1'],
  ...['--history', '#=2000,5m', '--history-max-messages', '2000', '--history-max-bytes', `${LOG_BYTES}`],
  ...[
    '--retain',
    'state.#',
    '--retain-max-keys',
    '500',
    '--retain-max-bytes',
    '1048576',
    '--stream-lease',
    `${LEASE_MS}`,
    '--meta',
    'stream.#',
  ],
  // One machine is all clients: their budgets are not what is tried.
  ...['--work-per-second', '100000000', '--work-burst', '100000000', '--max-streams-per-user', '100000'],
]

/** Nodes with one broker. */
export interface TrafficSystem {
  readonly name: BrokerName
  readonly nodes: readonly TrafficNode[]
  stop(): Promise<void>
}

const START: { readonly [Name in Exclude<BrokerName, 'memory'>]: () => Promise<Service> } = {
  redis: () => startRedis({ isPrivate: true }),
  nats: () => startNats({ isPrivate: true, hasJetStream: true }),
  rabbitmq: () => startRabbitmq({ isPrivate: true }),
}

/** @param moreFlags For its nodes. */
export async function startSystem(
  name: BrokerName,
  probe: string,
  moreFlags: readonly string[],
): Promise<TrafficSystem> {
  const service = name === 'memory' ? undefined : await START[name]()
  const flags =
    service === undefined
      ? []
      : ['--broker', service.url, '--broker-namespace', `doors-${randomBytes(4).toString('hex')}`]
  const count = service === undefined ? 1 : NODES_OF_A_BROKER
  const nodes: TrafficNode[] = []
  const stop = async () => {
    await Promise.allSettled(nodes.map((node) => node.stop()))
    await service?.stop()
  }
  try {
    for (let index = 1; index <= count; index++) {
      const all = [...FLAGS, ...flags, ...moreFlags]
      nodes.push(await TrafficNode.start(`${name} ${index}`, await freePort(), all, probe))
    }
  } catch (error) {
    await stop()
    throw error
  }
  return { name, nodes, stop }
}

/** What is used of a client of `pg`. */
interface DatabaseClient {
  on(event: 'error', handler: (error: unknown) => void): unknown
  connect(): Promise<unknown>
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly unknown[] }>
  end(): Promise<void>
}

/** A database whose rows are published. */
export class OutboxDatabase {
  readonly url: string
  readonly #client: DatabaseClient
  readonly #service: Service

  private constructor(service: Service, client: DatabaseClient) {
    this.url = service.url
    this.#service = service
    this.#client = client
  }

  static async start(): Promise<OutboxDatabase> {
    const service = await startPostgres()
    // The library of the outbox, which this folder has not.
    const requireOf = createRequire(path.join(process.cwd(), 'packages/outbox-postgres/package.json'))
    const { Client } = requireOf('pg') as { readonly Client: new (url: string) => DatabaseClient }
    const client = new Client(service.url)
    // Queries tell.
    client.on('error', () => undefined)
    await client.connect()
    await client.query(SCHEMA)
    return new OutboxDatabase(service, client)
  }

  /** Inserts a row. @returns `inserted`, or that the database refuses the text. */
  async insert(key: string, json: string): Promise<string> {
    try {
      await this.#client.query(`INSERT INTO ${TABLE} (key, payload) VALUES ($1, $2)`, [key, json])
      return 'inserted'
    } catch (error) {
      return `refused by PostgreSQL: ${(error as { readonly code?: string }).code}`
    }
  }

  /** Rows of a key that wait. */
  async waiting(key: string): Promise<number> {
    const { rows } = await this.#client.query(`SELECT count(*) FROM ${TABLE} WHERE key = $1 AND error IS NULL`, [key])
    return Number((rows[0] as { count: string }).count)
  }

  async stop(): Promise<void> {
    await this.#client.end()
    await this.#service.stop()
  }
}
