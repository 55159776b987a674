import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { onTestFinished, vi } from 'vitest'
import type { OutboxContext, OutboxMessage } from 'webmq-server/outbox'
import { sharedService } from 'webmq-services'
import { PostgresOutbox } from '../src/outbox.js'
import { SCHEMA } from '../src/schema.js'

/** A connection that ends with the test. */
export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  // Tests end the server under it; queries tell.
  client.on('error', () => undefined)
  await client.connect()
  // It may have ended with its server.
  onTestFinished(() => client.end().catch(() => undefined))
  return client
}

/** A database of its own in the shared PostgreSQL, with the table. */
export async function freshDatabase(schema = SCHEMA): Promise<{ url: string; client: pg.Client }> {
  const { url } = await sharedService('postgres')
  const name = `test_${randomBytes(6).toString('hex')}`
  await (await connect(url)).query(`CREATE DATABASE ${name}`)
  const own = Object.assign(new URL(url), { pathname: `/${name}` }).href
  const client = await connect(own)
  await client.query(schema)
  return { url: own, client }
}

/** An outbox that hands its messages to the test. */
export function startOutbox(
  url: string,
  publish: (message: OutboxMessage, text: string) => unknown = () => undefined,
  { checkMs, ...options }: Partial<OutboxContext> & { readonly checkMs?: number } = {},
) {
  const lines: object[] = []
  const at = (level: string) => (fields: object | string, message?: string) =>
    void lines.push({ level, fields, message })
  const defaults = { pollMs: 200, maxBatchRows: 500, maxBatchBytes: 1_048_576, maxPayloadBytes: 1_000 }
  const logger = { info: at('info'), warn: at('warn') }
  const outbox = new PostgresOutbox({ ...defaults, logger, ...options, url }, checkMs)
  const texts: string[] = []
  outbox.start(async (message) => {
    const text = Buffer.from(message.payload).toString()
    await publish(message, text)
    texts.push(`${message.key} ${text}`)
    return { isDuplicate: false }
  })
  onTestFinished(() => outbox.stop(1_000))
  const becomes = (status: string) => vi.waitFor(() => equal(outbox.status, status), PATIENT)
  return {
    outbox,
    texts,
    lines,
    becomes,
    published: (count: number) => vi.waitFor(() => equal(texts.length, count), PATIENT),
  }
}

const PATIENT = { timeout: 60_000, interval: 20 }

function equal(one: unknown, other: unknown): void {
  if (one !== other) throw new Error(`${one} is not ${other}`)
}
