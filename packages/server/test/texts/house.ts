import { SignJWT } from 'jose'
import { expect, vi } from 'vitest'
import { MemoryBroker } from '../../src/adapters/brokers/memory/broker.js'
import type { ServerOptions } from '../../src/index.js'
import type { Broker } from '../../src/kernel/ports/broker.js'
import { API_KEY, ApiServer, SECRET } from '../api-server.js'
import type { NodeAccess } from './door.js'
import { Peer } from './peer.js'
import { askRaw, type RawAnswer, statusOf } from './raw-http.js'

const MIB = 1_048_576
const WORK = 1_000_000_000
export const LEASE_MS = 1_000

/** Everything is logged, and only the texts are odd: no size, rate or budget answers in their place. */
const ROOMY: ServerOptions = {
  transport: 'native',
  jwt: { secret: SECRET },
  history: ['#=100000,1d'],
  historyMaxBytes: 1024 * MIB,
  retain: ['state.#'],
  meta: ['#'],
  maxPayloadBytes: 2 * MIB,
  maxOutboxBytes: 64 * MIB,
  maxStreamBytes: 8 * MIB,
  presenceMaxDataBytes: 65_536,
  presenceMaxMembersPerUser: 10_000,
  workPerSecond: WORK,
  workBurst: WORK,
  streamLeaseMs: LEASE_MS,
  maxStreamsPerUser: 10_000,
}

/** One node of a table's tests, somebody who only wants to be served, and what went wrong. */
export class House implements NodeAccess {
  readonly api: ApiServer
  /** The memory broker: through it another program writes, as a node of another version would. */
  readonly broker: Broker | undefined
  readonly reader: Peer
  readonly #bystander: Peer
  readonly token: string
  readonly #faults: string[] = []
  readonly #rejected = (error: unknown) => void this.#faults.push(`unhandled rejection: ${error}`)
  #linesSeen = 0
  #keyCount = 0

  private constructor(api: ApiServer, broker: Broker | undefined, token: string, reader: Peer, bystander: Peer) {
    this.api = api
    this.broker = broker
    this.reader = reader
    this.#bystander = bystander
    this.token = token
    process.on('unhandledRejection', this.#rejected)
  }

  static async open(options: ServerOptions = {}): Promise<House> {
    const started = vi.spyOn(MemoryBroker.prototype, 'start')
    const api = await ApiServer.start({ ...ROOMY, ...options })
    const broker = started.mock.contexts.at(-1) as Broker | undefined
    started.mockRestore()
    const token = await tokenOfSomebody()
    const [reader, bystander] = await Promise.all([1, 2].map(() => Peer.open(api.webSocketUrl, token)))
    if (reader === undefined || bystander === undefined) throw new Error('nobody came in')
    await reader.ask((id) => `listen ${id} #`)
    await bystander.ask((id) => `listen ${id} bystander`)
    return new House(api, broker, token, reader, bystander)
  }

  key(prefix = 'cell'): string {
    return `${prefix}.${++this.#keyCount}`
  }

  async peer(): Promise<Peer> {
    return await Peer.open(this.api.webSocketUrl, this.token)
  }

  async arrived(key: string, isMeant: (header: string) => boolean = () => true): Promise<Buffer | undefined> {
    const frame = await this.reader.next(
      ({ verb, name, header }) => verb === 'message' && name === key && isMeant(header),
    )
    return frame?.body
  }

  http(method: string, path: string, body?: Uint8Array, headers: Record<string, string> = {}): Promise<RawAnswer> {
    const authorized = { authorization: `Bearer ${API_KEY}`, ...headers }
    return askRaw({ port: this.api.port, method, path, body, headers: authorized })
  }

  status(path: string, headers: Record<string, string>): Promise<number> {
    const authorized = { authorization: `Bearer ${this.token}`, ...headers }
    return statusOf({ port: this.api.port, method: 'GET', path, headers: authorized })
  }

  /**
   * What went wrong since the last call: an error line, an unhandled rejection, a node that serves nobody.
   * @param mayTell Error lines are right: the fault is one of the application, which looks for them.
   */
  async harm(mayTell = false): Promise<string> {
    const { lines } = this.api.log
    const told = lines.slice(this.#linesSeen).filter(({ level }) => level === 'error' || level === 'fatal')
    this.#linesSeen = lines.length
    const faults = this.#faults.splice(0)
    if (!mayTell) faults.push(...told.map(({ message, fields }) => `${message}: ${reasonIn(fields)}`))
    if (!(await this.#serves())) faults.push('the node serves nobody')
    this.reader.frames = []
    return faults.map((fault) => `, but ${fault}`).join('')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async close(): Promise<void> {
    await this.api.server.stop({ drainMs: 0 })
    process.off('unhandledRejection', this.#rejected)
    expect(this.#faults).toEqual([])
  }

  async #serves(): Promise<boolean> {
    const bystander = this.#bystander
    bystander.frames = []
    bystander.send('ping')
    bystander.send('publish - bystander', Buffer.from('"served"'))
    const came = await bystander.next(({ verb, body }) => verb === 'message' && String(body) === '"served"')
    const pong = await bystander.next(({ verb }) => verb === 'pong')
    return came !== undefined && pong !== undefined
  }
}

function reasonIn(fields: object): string {
  const { err } = fields as { readonly err?: unknown }
  return err instanceof Error ? err.message : JSON.stringify(fields)
}

async function tokenOfSomebody(): Promise<string> {
  const grants = [{ keys: ['#'], allow: ['listen', 'publish', 'presence'] }]
  return await new SignJWT({ webmq: { grants } })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject('somebody')
    .setExpirationTime('1h')
    .sign(new TextEncoder().encode(SECRET))
}
