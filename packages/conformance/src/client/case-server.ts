import { createHmac } from 'node:crypto'
import { createServer } from 'webmq-server'
import type { FaultStep, ServerSetup } from './case.js'
import { FaultProxy } from './fault-proxy.js'

const SECRET = 'a secret of 32 bytes or more, as HS256 wants it'
const SHORT_S = 4
const LONG_S = 3_600

/** Which keys the server of every case logs and retains. */
const OPTIONS = {
  history: ['log.#=1000,1h', 'streams.#=1000,1h'],
  retain: ['state.#'],
} as const

/** A server that plays cases, until it is stopped. */
export interface StartedServer {
  readonly port: number
  publish(key: string, payload: unknown, options: { readonly ephemeral: boolean }): unknown
  stop(): unknown
}

/** Starts the server of a case, and starts it anew, with another log, for the fault `restart`. */
export type StartServer = (options: ServerSetup['options'], secret: string | undefined) => Promise<StartedServer>

/** The server of one case, in this process, behind a proxy that the case can cut. */
export class CaseServer {
  readonly #setup: ServerSetup
  readonly #proxy: FaultProxy
  readonly #startServer: StartServer
  #server: StartedServer | undefined

  private constructor(setup: ServerSetup, proxy: FaultProxy, startServer: StartServer) {
    this.#setup = setup
    this.#proxy = proxy
    this.#startServer = startServer
  }

  static async start(setup: ServerSetup, startServer: StartServer = startWebMQ): Promise<CaseServer> {
    const server = new CaseServer(setup, await FaultProxy.start(), startServer)
    await server.#start()
    return server
  }

  get url(): string {
    return `ws://127.0.0.1:${this.#proxy.port}/ws`
  }

  get server(): StartedServer {
    if (this.#server === undefined) throw new Error('the server does not run')
    return this.#server
  }

  async fault({ fault: name, status = 404, body = '' }: FaultStep): Promise<void> {
    if (name === 'answer') {
      this.#proxy.answer(status, body)
      return
    }
    if (name !== 'restart') {
      this.#proxy[name]()
      return
    }
    this.#proxy.hold()
    await this.server.stop()
    await this.#start()
    this.#proxy.release()
  }

  async stop(): Promise<void> {
    await this.#proxy.stop()
    await this.#server?.stop()
  }

  async #start(): Promise<void> {
    const { tokens = false, options } = this.#setup
    this.#server = await this.#startServer({ ...OPTIONS, ...options }, tokens ? SECRET : undefined)
    this.#proxy.pointTo(this.#server.port)
  }
}

const startWebMQ: StartServer = async (options, secret) => {
  const server = createServer({
    host: '127.0.0.1',
    port: 0,
    logLevel: 'silent',
    ...(secret !== undefined && { jwt: { secret } }),
    ...options,
  })
  const { port } = await server.start()
  return {
    port,
    publish: (key, payload, publishOptions) => server.publish(key, payload, publishOptions),
    stop: () => server.stop({ drainMs: 0 }),
  }
}

/**
 * The token that a case names: `ada` may listen and publish everywhere, `ada:short` for four seconds, `ada:chat.#` at the keys
 * of a pattern, and `ada:#:presence` may do something else. `bad` is signed with another secret. For `throw`, the adapter's
 * function fails.
 */
export function tokenNamed(name: string): string {
  if (name === 'throw') return name
  const [user = '', detail = '#', actions = 'listen+publish'] = name.split(':')
  const nowS = Date.now() / 1_000
  const claims = {
    sub: user,
    exp: nowS + (detail === 'short' ? SHORT_S : LONG_S),
    webmq: { grants: [{ keys: [detail === 'short' ? '#' : detail], allow: actions.split('+') }] },
  }
  const signed = `${base64url({ alg: 'HS256', typ: 'JWT' })}.${base64url(claims)}`
  const secret = user === 'bad' ? `${SECRET}, another one` : SECRET
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

function base64url(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
