import { createServer, type ServerOptions, type WebMQServer } from 'webmq-server'
import { type ServerProcess, startServerProcess } from '../server-process.js'

/** A node that can be stopped, started again, and where it can be, killed. */
export interface TestNode {
  /** Where clients connect to; `undefined` while it is not there. */
  readonly port: number | undefined
  start(): Promise<void>
  /** Drains and stops. Idempotent. */
  stop(): Promise<void>
  /** Ends it without a word; absent when it lives in this process. */
  crash?(): Promise<void>
}

/** Time over which a stopping node closes its connections. */
const DRAIN_MS = 10

/** A node in this process: real sockets, and a start that costs milliseconds. */
export class NodeInProcess implements TestNode {
  port: number | undefined
  readonly #options: ServerOptions
  #server: WebMQServer | undefined

  constructor(options: ServerOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    const server = createServer({ ...this.#options, port: 0 })
    this.#server = server
    const { port } = await server.start()
    this.port = port
  }

  async stop(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    // Its clients are to go elsewhere while it drains.
    this.port = undefined
    await server?.stop({ drainMs: DRAIN_MS })
  }
}

/** A node as a user runs it. */
export class NodeProcess implements TestNode {
  port: number | undefined
  readonly #flags: readonly string[]
  readonly #ownPort: number
  #process: ServerProcess | undefined

  /** @param port Its own, the same after every start. */
  constructor(options: ServerOptions, port: number) {
    this.#flags = flagsOf({ ...options, drainTimeoutMs: DRAIN_MS })
    this.#ownPort = port
  }

  async start(): Promise<void> {
    this.#process = await startServerProcess(this.#ownPort, this.#flags)
    this.port = this.#ownPort
  }

  async stop(): Promise<void> {
    this.port = undefined
    await this.#process?.kill('SIGTERM')
  }

  async crash(): Promise<void> {
    await this.#process?.kill('SIGKILL')
    this.port = undefined
  }
}

/** The flags of the options that these tests use. */
const FLAGS: Readonly<Record<string, string>> = {
  logLevel: 'log-level',
  threads: 'threads',
  history: 'history',
  historyMaxMessages: 'history-max-messages',
  historyMaxBytes: 'history-max-bytes',
  pingIntervalMs: 'ping-interval',
  pingTimeoutMs: 'ping-timeout',
  closeTimeoutMs: 'close-timeout',
  streamLeaseMs: 'stream-lease',
  drainTimeoutMs: 'drain-timeout',
  broker: 'broker',
  brokerNamespace: 'broker-namespace',
  brokerHeartbeatMs: 'broker-heartbeat',
  mesh: 'mesh-listen',
}

function flagsOf(options: ServerOptions): string[] {
  return Object.entries(options).flatMap(([name, value]) => {
    const flag = FLAGS[name]
    if (flag === undefined) throw new Error(`no flag is known for the option ${name}`)
    const text = name === 'mesh' ? (value as { listen: string }).listen : String(value)
    return [`--${flag}`, text]
  })
}
