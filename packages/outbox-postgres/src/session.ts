import { Socket } from 'node:net'
import pg from 'pg'
import { within } from 'webmq-server/outbox'
import { TABLE } from './schema.js'

/** PostgreSQL ends a session that is silent for so long, and frees its lock. So it must be longer than {@link LEASE_MS}. */
const SILENT_MS = 30_000
/** A leader that has not heard from PostgreSQL for this time publishes nothing more: another node may lead. */
const LEASE_MS = 15_000
const ANSWER_MS = 10_000
const CLOSE_MS = 500

/** For this session, those that this version of PostgreSQL has. The last four find a node whose machine is gone. */
const SETTINGS = `
SELECT set_config(name, wanted.value, false)
FROM (VALUES ('idle_session_timeout', '${SILENT_MS}'), ('statement_timeout', '${ANSWER_MS}'),
  ('tcp_keepalives_idle', '5'), ('tcp_keepalives_interval', '5'), ('tcp_keepalives_count', '3'),
  ('tcp_user_timeout', '${LEASE_MS}')) AS wanted (name, value)
JOIN pg_settings USING (name)`

/** Of all advisory locks of applications, those that begin with these bytes are ours: one for each schema with the table. */
const LOCKS = BigInt(0x77_6d_71) << 32n
const LEAD = `
SELECT pg_try_advisory_lock(${LOCKS} + relnamespace::bigint) AS leads FROM pg_class WHERE oid = '${TABLE}'::regclass`

/** One connection to PostgreSQL. The lock that makes its node the leader lives as long as it does. */
export class DatabaseSession {
  readonly #client: pg.Client
  readonly #socket: Socket
  readonly #onEvent: () => void
  #heardMs = performance.now()
  #lost: Error | undefined
  /** One query at a time. */
  #last: Promise<unknown> = Promise.resolve()

  /** @param onEvent Called when something may have been inserted, and when the connection is lost. */
  constructor(url: string, onEvent: () => void) {
    // Its own socket can be destroyed. One of the library waits for an end that a silent network never brings.
    const socket = new Socket()
    this.#socket = socket
    this.#onEvent = onEvent
    this.#client = new pg.Client({
      connectionString: url,
      stream: () => socket,
      keepAlive: true,
      connectionTimeoutMillis: ANSWER_MS,
      query_timeout: ANSWER_MS,
      fallback_application_name: 'webmq-outbox',
    })
    this.#client.on('error', (error) => this.#lose(error))
    this.#client.on('end', () => this.#lose(new Error('the connection has ended')))
    this.#client.on('notification', onEvent)
  }

  /** @throws when PostgreSQL is not reached within 10 s, or refuses the user. */
  async connect(): Promise<void> {
    await this.#client.connect()
    await this.query(SETTINGS)
  }

  /** Whether it has heard from PostgreSQL lately, so that no other session can have its lock. */
  get isFresh(): boolean {
    return this.#lost === undefined && performance.now() - this.#heardMs < LEASE_MS
  }

  /** Becomes the leader, unless another session is. */
  async lead(): Promise<boolean> {
    const [row] = await this.query<{ leads: boolean }>(LEAD)
    if (row?.leads !== true) return false
    await this.query(`LISTEN ${TABLE}`)
    return true
  }

  /** @throws the error of PostgreSQL, or when there is no answer within 10 s. */
  query<Row extends object>(text: string, values: unknown[] = []): Promise<Row[]> {
    const rows = this.#last.then(() => this.#send<Row>(text, values))
    this.#last = rows.catch(() => undefined)
    return rows
  }

  async #send<Row extends object>(text: string, values: unknown[]): Promise<Row[]> {
    if (this.#lost !== undefined) throw this.#lost
    const sentMs = performance.now()
    const { rows } = await this.#client.query<Row>(text, values)
    this.#heardMs = sentMs
    return rows
  }

  /** Ends it in order, which frees the lock at once. */
  async close(): Promise<void> {
    if (this.#lost === undefined) await within(this.#client.end(), CLOSE_MS)
    this.destroy()
  }

  destroy(): void {
    this.#lost ??= new Error('the connection was closed')
    this.#socket.destroy()
  }

  #lose(error: Error): void {
    if (this.#lost !== undefined) return
    this.#lost = error
    this.#onEvent()
  }
}
