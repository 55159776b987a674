import { randomBytes } from 'node:crypto'
import { Connection } from '../actors/connection.js'
import { idOf } from '../actors/publisher.js'
import { CannotRun } from '../exit-codes.js'
import { placeOf } from '../judging/place.js'
import { createRunRecord, type NodeAddress } from '../judging/record.js'

/** What a node said of itself, and what it did with a publish. */
export interface Probed {
  readonly node: string
  readonly version: string
  /** Of `welcome`. */
  readonly limits: Readonly<Record<string, number>>
  /** Time until the token expires; missing if it does not. */
  readonly expiresInMs?: number
  /** Of the log that has taken a message with each of the keys; missing if it was not logged. */
  readonly epochs: readonly (string | undefined)[]
}

const PROBE_TIMEOUT_MS = 10_000
const REFUSED: Readonly<Record<string, string>> = {
  E_FORBIDDEN: 'the token must grant listen, publish and history for it',
  E_UNAUTHENTICATED: 'give it a token by --token-file',
}
/** Close codes that say something of the token. */
const OF_TOKEN: Readonly<Record<number, string>> = {
  4002: 'it was given no token',
  4009: 'the token has expired',
  4501: 'the token is not valid',
  4502: 'the token was revoked',
}

/**
 * Connects once, listens, publishes one message with each key, and reads the first one back.
 * @throws {CannotRun} with the way out.
 */
export async function probe(
  address: NodeAddress,
  pattern: string,
  keys: readonly string[],
  word: string,
): Promise<Probed> {
  const record = createRunRecord()
  const beganAtMs = performance.now()
  const nowMs = () => performance.now() - beganAtMs
  let connection: Connection | undefined
  try {
    return await new Promise<Probed>((resolve, reject) => {
      const fail = (text: string) => reject(new CannotRun(`${address.url}: ${text}`))
      let welcome: Readonly<Record<string, unknown>> = {}
      const opened = async (body: Readonly<Record<string, unknown>>, on: Connection) => {
        welcome = body
        if (body.auth === 'required') return fail('it asks for a token: --token-file, or --token')
        const requests = [
          ask(on, 'listen', pattern, pattern),
          ...keys.map((key) =>
            ask(on, 'publish', key, `${key} id=${idOf(word)}-probe-${randomBytes(4).toString('hex')}\n{"probe":true}`),
          ),
        ]
        const [, ...positions] = await Promise.all(requests)
        const [key = ''] = keys
        if (positions[0] !== undefined) await ask(on, 'history', key, `${key} last=1`)
        resolve({ ...factsOf(welcome), epochs: positions.map((position) => placeOf(position)?.epoch) })
      }
      connection = new Connection({
        owner: 'probe',
        node: address,
        record,
        nowMs,
        pingIntervalMs: PROBE_TIMEOUT_MS,
        pongTimeoutMs: PROBE_TIMEOUT_MS,
        answerTimeoutMs: PROBE_TIMEOUT_MS,
        handlers: {
          opened: (body) => {
            if (connection !== undefined) opened(body, connection).catch((error: unknown) => fail(textOf(error)))
          },
          ended: () => fail(whyEnded(record.connections[0])),
        },
      })
    })
  } finally {
    connection?.close('stop')
  }
}

/** @returns the position of the `ok`. */
async function ask(
  connection: Connection,
  verb: 'listen' | 'publish' | 'history',
  key: string,
  rest: string,
): Promise<string | undefined> {
  return await new Promise((resolve, reject) => {
    connection.request(verb, rest, {
      ok: ({ position }) => resolve(position),
      refused: (code) => {
        const way = REFUSED[code]
        reject(new CannotRun(`it refuses to ${verb} ${key} with ${code}${way === undefined ? '' : `: ${way}`}`))
      },
    })
  })
}

function factsOf(welcome: Readonly<Record<string, unknown>>): Omit<Probed, 'epochs'> {
  const { node, version, limits, expiresInMs } = welcome
  const numbers = Object.entries(isRecord(limits) ? limits : {}).filter(
    (entry): entry is [string, number] => typeof entry[1] === 'number',
  )
  return {
    node: String(node),
    version: typeof version === 'string' ? version : 'unknown',
    limits: Object.fromEntries(numbers),
    ...(typeof expiresInMs === 'number' ? { expiresInMs } : {}),
  }
}

function whyEnded(
  record: { readonly reason?: string; readonly closed?: { readonly code: number } } | undefined,
): string {
  const { reason, closed } = record ?? {}
  const token = OF_TOKEN[closed?.code ?? 0]
  if (token !== undefined) return token
  if (reason === 'no welcome' || reason === 'no answer') return `it did not answer within ${PROBE_TIMEOUT_MS / 1_000} s`
  return reason === undefined ? `it closed the connection with ${closed?.code}` : `it cannot be reached: ${reason}`
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
