import { createServer, type ServerOptions, type WebMQServer } from '../../src/index.js'
import { type LogLine, recordingLogger } from '../fake-server.js'
import { type ConnectOptions, ProtocolClient } from '../protocol-client.js'

/** A server with hooks, on a free port, and its clients. */
export class Serving implements AsyncDisposable {
  readonly server: WebMQServer
  readonly url: string
  readonly log: readonly LogLine[]
  readonly #clients: ProtocolClient[] = []

  private constructor(server: WebMQServer, url: string, log: readonly LogLine[]) {
    this.server = server
    this.url = url
    this.log = log
  }

  static async start(options: ServerOptions): Promise<Serving> {
    const { logger, lines } = recordingLogger()
    const server = createServer({ port: 0, threads: 1, logger, ...options })
    const { url } = await server.start()
    return new Serving(server, url, lines)
  }

  /** Resolves with the first message of the server: `welcome`, or the reason of a refusal. */
  async connect(options?: ConnectOptions): Promise<ProtocolClient> {
    const client = await ProtocolClient.open(this.url, options)
    this.#clients.push(client)
    return client
  }

  /** Logged failures of hooks. */
  get failures(): { readonly hook?: string; readonly source?: string; readonly err?: Error }[] {
    return this.log
      .filter(({ level, message }) => level === 'error' && message === 'a hook failed')
      .map(({ fields }) => fields)
  }

  /** Logged errors that are no failures of hooks: bugs. */
  get bugs(): readonly LogLine[] {
    return this.log.filter(({ level, message }) => /error|fatal/.test(level) && message !== 'a hook failed')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.socket.terminate()
    await this.server.stop({ drainMs: 0 })
  }
}
