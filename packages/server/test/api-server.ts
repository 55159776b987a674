import { SignJWT } from 'jose'
import { createServer, type ServerOptions, type WebMQServer } from '../src/index.js'
import { recordingLogger } from './fake-server.js'

export const API_KEY = 'api-key-of-32-bytes-for-the-tests'
export const SECRET = 'secret-of-32-bytes-for-the-tests!'

/** What a request of a test has beside its path. */
export interface ApiRequest {
  readonly method?: string
  readonly body?: unknown
  readonly bearer?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
}

/** An answer, as tests compare it. */
export interface ApiAnswer {
  readonly status: number
  readonly json: Record<string, unknown>
  readonly headers: Headers
}

/** A real server with the HTTP API, and a caller of it. */
export class ApiServer {
  readonly server: WebMQServer
  readonly log = recordingLogger()
  #url = ''

  constructor(options: ServerOptions = {}) {
    this.server = createServer({
      host: '127.0.0.1',
      port: 0,
      transport: 'ws',
      apiKeys: [API_KEY],
      logger: this.log.logger,
      ...options,
    })
  }

  static async start(options?: ServerOptions): Promise<ApiServer> {
    const server = new ApiServer(options)
    const { port } = await server.server.start()
    server.#url = `http://127.0.0.1:${port}`
    return server
  }

  get url(): string {
    return this.#url
  }

  get port(): number {
    return Number(new URL(this.#url).port)
  }

  get webSocketUrl(): string {
    return `${this.#url.replace('http', 'ws')}/ws`
  }

  /** Asks with the API key, unless `bearer` is another one or `undefined`. A body that is no bytes is sent as JSON. */
  async ask(
    path: string,
    { method, body, bearer = API_KEY, headers = {}, ...rest }: ApiRequest = {},
  ): Promise<ApiAnswer> {
    const isBytes = body instanceof Uint8Array || typeof body === 'string'
    const response = await fetch(`${this.#url}${path}`, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        ...('bearer' in rest || bearer === '' ? {} : { authorization: `Bearer ${bearer}` }),
        ...(body === undefined || isBytes ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isBytes ? Buffer.from(body) : JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, json: text === '' ? {} : JSON.parse(text), headers: response.headers }
  }
}

/** A token of a user with these grants. */
export async function tokenOf(
  user: string,
  keys: readonly string[] = ['#'],
  claims: { readonly jti?: string; readonly iat?: number } = {},
): Promise<string> {
  const { iat = Math.floor(Date.now() / 1_000), jti } = claims
  const jwt = new SignJWT({ webmq: { grants: [{ keys, allow: ['listen', 'publish'] }] }, ...(jti && { jti }) })
  return await jwt
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(user)
    .setIssuedAt(iat)
    .setExpirationTime(iat + 3_600)
    .sign(new TextEncoder().encode(SECRET))
}
