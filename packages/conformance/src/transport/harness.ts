import { expect, onTestFinished } from 'vitest'
import type { ConnectionId, GroupId, Transport, TransportAddress, TransportOptions } from 'webmq-server/ports'
import type { ClientOptions } from 'ws'
import { eventually } from './eventually.js'
import { RawClient } from './raw-client.js'
import { RecordingSink, type SinkHandlers } from './recording-sink.js'
import { WebSocketClient } from './web-socket-client.js'

/** Makes a transport that was not started. */
export type CreateTransport = (options: TransportOptions) => Transport

/** Options for tests: generous limits, no pings, any free port. */
export const DEFAULT_OPTIONS: TransportOptions = {
  host: '127.0.0.1',
  port: 0,
  threads: 2,
  maxMessageBytes: 256 * 1024,
  maxOutboxBytes: 1024 * 1024,
  maxHeaderBytes: 8 * 1024,
  maxConnections: 1_000,
  handshakeTimeoutMs: 5_000,
  pingIntervalMs: 0,
  pingTimeoutMs: 10_000,
  closeTimeoutMs: 5_000,
}

/** A client and its connection in the transport. */
export interface Connected<Client> {
  readonly client: Client
  readonly connection: ConnectionId
}

/** A running transport with its sink, and clients that end with the test. */
export class Harness {
  readonly transport: Transport
  readonly sink: RecordingSink
  readonly address: TransportAddress
  readonly #clients: { destroy(): void }[] = []
  #lastClient = 0

  private constructor(transport: Transport, sink: RecordingSink, address: TransportAddress) {
    this.transport = transport
    this.sink = sink
    this.address = address
  }

  /** Starts a transport that accepts every upgrade, unless `handlers.upgrade` decides. Stopped when the test ends. */
  static async start(
    create: CreateTransport,
    options: Partial<TransportOptions> = {},
    handlers: (transport: Transport) => SinkHandlers = () => ({}),
  ): Promise<Harness> {
    const transport = create({ ...DEFAULT_OPTIONS, ...options })
    const sink = new RecordingSink({
      upgrade: ({ id }) => sink.calling(() => transport.accept(id)),
      ...handlers(transport),
    })
    const address = await transport.start(sink)
    const harness = new Harness(transport, sink, address)
    onTestFinished(async () => {
      for (const client of harness.#clients) client.destroy()
      await transport.stop()
      expect(sink.violations).toEqual([])
      expect([...sink.opened.keys()].filter((connection) => sink.isOpen(connection))).toEqual([])
    })
    return harness
  }

  get port(): number {
    return this.address.port
  }

  get url(): string {
    return `ws://127.0.0.1:${this.port}`
  }

  /** Connects a well-behaved client. */
  async connect(options?: ClientOptions): Promise<Connected<WebSocketClient>> {
    const path = this.#nextPath()
    const client = this.track(await WebSocketClient.open(this.url + path, options))
    return { client, connection: await this.connectionAt(path) }
  }

  async connectMany(count: number): Promise<Connected<WebSocketClient>[]> {
    return await Promise.all(Array.from({ length: count }, () => this.connect()))
  }

  /** Connects a raw client. */
  async connectRaw(headers: Record<string, string> = {}): Promise<Connected<RawClient>> {
    const path = this.#nextPath()
    const client = this.track(await RawClient.open(this.port, path, headers))
    return { client, connection: await this.connectionAt(path) }
  }

  /** A TCP connection that has sent nothing. */
  async connectSocket(): Promise<RawClient> {
    return this.track(await RawClient.connect(this.port))
  }

  /** The connection at a unique path. */
  async connectionAt(path: string): Promise<ConnectionId> {
    return await eventually(() => {
      const request = this.sink.upgrades.find((upgrade) => upgrade.path === path)
      for (const [connection, upgrade] of this.sink.opened) if (upgrade === request?.id) return connection
      throw new Error(`no connection at ${path}`)
    })
  }

  /** Ends a client with the test. */
  track<T extends { destroy(): void }>(client: T): T {
    this.#clients.push(client)
    return client
  }

  /** Waits until the client has received everything sent to its connection before this call. */
  async settle({ client, connection }: Connected<WebSocketClient>): Promise<void> {
    const mark = `settle-${Math.random()}`
    this.transport.send(connection, mark, false)
    await eventually(() => expect(client.messages.at(-1)).toBe(mark))
    client.messages.pop()
  }

  /** Fails unless the transport still serves a new client, both ways. */
  async expectToServe(): Promise<void> {
    const { client, connection } = await this.connect()
    client.send('still there?')
    await eventually(() => expect(this.sink.textsOf(connection)).toEqual(['still there?']))
    this.transport.send(connection, 'still here', false)
    await eventually(() => expect(client.messages).toEqual(['still here']))
    client.close()
  }

  #nextPath(): string {
    return `/client-${++this.#lastClient}`
  }
}

/** A group of the transport's owner. */
export function group(id: number): GroupId {
  return id as GroupId
}
