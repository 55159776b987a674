import { once } from 'node:events'
import { type IncomingMessage, request as plainRequest } from 'node:http'
import { request as secureRequest } from 'node:https'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import { createServer } from '../../packages/server/src/create-server.js'
import type { WebMQServer } from '../../packages/server/src/doors/in-process/webmq-server.js'
import type { ServerOptions } from '../../packages/server/src/doors/options/server-options.js'
import { type LogLine, recordingLogger } from '../../packages/server/test/fake-server.js'
import { ProtocolClient } from '../../packages/server/test/protocol-client.js'
import { type ServerProcess, startServerProcess } from '../server-process.js'

const API_KEY = 'api-key-of-32-bytes-for-the-tests'
/** The key that a test publishes to, in words that a rule of history can name. */
export const KEY = 't.1'

/** A node in a state. */
export interface Stage {
  /** Its admin port, `http://127.0.0.1:PORT`. */
  readonly admin: string
  /** A page of metrics from before; empty for a node that was never well. */
  readonly before: string
  /** What `doctor` is asked about. */
  readonly url: string
  readonly lines: () => readonly Pick<LogLine, 'level' | 'message'>[]
  /** What a client gets for a publish over WebSocket and over HTTP: `accepted`, code and words, or `no connection`. */
  readonly words: () => Promise<readonly string[]>
  /** A file with the authority that its clients trust. */
  readonly caFile?: string
}

/** A real node in this process. */
export class StageNode implements Stage {
  readonly #log = recordingLogger()
  readonly server: WebMQServer
  before = ''
  url = ''
  words = () => wordsOver(this.url)

  constructor(options: ServerOptions) {
    this.server = createServer({
      host: '127.0.0.1',
      port: 0,
      adminPort: 0,
      transport: 'ws',
      apiKeys: [API_KEY],
      closeTimeoutMs: 200,
      brokerTimeoutMs: 1_000,
      logger: this.#log.logger,
      ...options,
    })
    onTestFinished(() => this.server.stop({ drainMs: 0, delayMs: 0 }))
  }

  static async start(options: ServerOptions = {}): Promise<StageNode> {
    const node = new StageNode(options)
    const { port } = await node.server.start()
    node.url = `${options.tls === undefined ? 'ws' : 'wss'}://127.0.0.1:${port}/ws`
    node.before = await scrape(node.admin)
    return node
  }

  get admin(): string {
    return `http://127.0.0.1:${this.server.adminAddress?.port}`
  }

  readonly lines = (): readonly LogLine[] => this.#log.lines
}

/** A real node in a process of its own. */
export async function startStageProcess(
  flags: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<Stage & { readonly kill: ServerProcess['kill'] }> {
  const all = ['--admin-port', '0', '--transport', 'ws', '--log-format', 'json', '--api-key', API_KEY, ...flags]
  const server = await startServerProcess(0, all, { env })
  onTestFinished(async () => void (await server.kill('SIGKILL')))
  const lines = () =>
    server
      .output()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as JsonLine)
      .map(({ level, msg, ...fields }) => ({ level: String(level), message: msg, fields }))
  const port = lines().find(({ message }) => message === 'the admin port listens')?.fields.port
  const admin = `http://127.0.0.1:${port}`
  const url = `${server.url.replace('http', 'ws')}/ws`
  return { admin, url, before: await scrape(admin), lines, words: () => wordsOver(url), kill: server.kill }
}

interface JsonLine {
  readonly level: string
  readonly msg: string
  readonly port?: number
}

/** Both doors at once: they wait for the same. @param ca An authority to trust. */
export function wordsOver(url: string, ca?: string): Promise<readonly string[]> {
  return Promise.all([overWebSocket(url, ca), overHttp(url, ca)])
}

async function overWebSocket(url: string, ca: string | undefined): Promise<string> {
  const client = await ProtocolClient.open(url, { ca }).catch((error: unknown) => error)
  if (!(client instanceof ProtocolClient)) {
    if (!/Unexpected server response/.test(String(client))) return 'no connection'
    return textOf((await ProtocolClient.refusal(url, { ca })).json as Refusal)
  }
  try {
    const answer = await client.request((id) => ({ verb: 'publish', id, key: KEY, echo: false, payload: '1' }))
    return answer.verb === 'ok' ? 'accepted' : textOf(answer)
  } finally {
    client.close()
  }
}

async function overHttp(url: string, ca: string | undefined): Promise<string> {
  const headers = { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' }
  const { hostname: host, port, protocol } = new URL(url)
  const options = { host, port, path: '/api/publish', method: 'POST', agent: false, headers, ca }
  const request = (protocol === 'wss:' ? secureRequest : plainRequest)(options)
  request.end(JSON.stringify({ key: KEY, payload: 1 }))
  try {
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    const body = await text(response)
    return response.statusCode === 200 ? 'accepted' : textOf(JSON.parse(body) as Refusal)
  } catch (error) {
    if (error instanceof SyntaxError) throw error
    return 'no connection'
  }
}

interface Refusal {
  readonly code: string
  readonly message: string
}

function textOf({ code, message }: Refusal): string {
  return `${code}: ${message}`
}

/** A page of metrics. */
export async function scrape(admin: string): Promise<string> {
  const response = await fetch(`${admin}/metrics`)
  return await response.text()
}
