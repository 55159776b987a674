import type { RequestOptions } from 'node:https'
import type { ConnectionOptions } from 'node:tls'
import { expect, onTestFinished } from 'vitest'
import {
  type ConnectionId,
  type GroupId,
  type TlsCertificate,
  type Transport,
  type TransportAddress,
  type TransportOptions,
  unixPathOf,
} from 'webmq-server/ports'
import type { ClientOptions } from 'ws'
import { eventually } from './eventually.js'
import { RawClient } from './raw-client.js'
import { RecordingSink, type SinkHandlers } from './recording-sink.js'
import { SseClient } from './sse-client.js'
import { WebSocketClient } from './web-socket-client.js'

/** Makes a transport that was not started. */
export type CreateTransport = (options: TransportOptions) => Transport

/** The host name that clients ask for over TLS; their own certificates have it. */
export const SERVER_NAME = 'localhost'

/** A transport that serves TLS in every test that does not say otherwise. */
export function withCertificates(
  create: CreateTransport,
  certificates: () => readonly TlsCertificate[],
): TestedTransport {
  return Object.assign((options: TransportOptions) => create(options), { certificates })
}

/** What a harness starts. */
export type TestedTransport = CreateTransport & { readonly certificates?: () => readonly TlsCertificate[] }

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
  /** How clients connect; `undefined`: without TLS. */
  readonly #tls: { ca: Buffer[]; servername: string } | undefined
  readonly #clients: { destroy(): void }[] = []
  #lastClient = 0

  private constructor(
    transport: Transport,
    sink: RecordingSink,
    address: TransportAddress,
    certificates: readonly TlsCertificate[] | undefined,
  ) {
    this.transport = transport
    this.sink = sink
    this.address = address
    this.#tls =
      certificates === undefined ? undefined : { ca: certificates.map(({ cert }) => cert), servername: SERVER_NAME }
  }

  /**
   * Starts a transport that accepts every upgrade, unless `handlers.upgrade` decides. Stopped when the test ends. With
   * certificates, clients connect over TLS and trust these.
   */
  static async start(
    create: TestedTransport,
    options: Partial<TransportOptions> = {},
    handlers: (transport: Transport) => SinkHandlers = () => ({}),
  ): Promise<Harness> {
    const tls = options.tls ?? create.certificates?.()
    const transport = create({ ...DEFAULT_OPTIONS, ...options, ...(tls === undefined ? undefined : { tls }) })
    const sink = new RecordingSink({
      upgrade: ({ id }) => sink.calling(() => transport.accept(id)),
      ...handlers(transport),
    })
    const address = await transport.start(sink)
    const harness = new Harness(transport, sink, address, tls)
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
    const path = unixPathOf(this.address.host)
    if (path !== undefined) return `ws+unix:${path}:`
    return `${this.#tls === undefined ? 'ws' : 'wss'}://127.0.0.1:${this.port}`
  }

  /** Connects a well-behaved client. */
  async connect(options?: ClientOptions): Promise<Connected<WebSocketClient>> {
    const path = this.#nextPath()
    const client = this.track(await WebSocketClient.open(this.url + path, { ...this.#tls, ...options }))
    return { client, connection: await this.connectionAt(path) }
  }

  async connectMany(count: number): Promise<Connected<WebSocketClient>[]> {
    return await Promise.all(Array.from({ length: count }, () => this.connect()))
  }

  /** Connects a raw client. */
  async connectRaw(headers: Record<string, string> = {}, tls?: ConnectionOptions): Promise<Connected<RawClient>> {
    const path = this.#nextPath()
    const options = this.#tls === undefined ? undefined : { ...this.#tls, ...tls }
    const client = this.track(await RawClient.open(this.port, path, headers, options))
    return { client, connection: await this.connectionAt(path) }
  }

  /** A request for an event stream. */
  requestStream(path: string, options: RequestOptions = {}): SseClient {
    return new SseClient(this.port, path, options, this.#tls)
  }

  /** A connection that has sent nothing; over TLS, nothing but its handshake. */
  async connectSocket(tls?: ConnectionOptions): Promise<RawClient> {
    if (this.#tls === undefined) return await this.connectTcp()
    return this.track(await RawClient.connectSecurely(this.port, { ...this.#tls, ...tls }))
  }

  /** A TCP connection that has sent nothing, not even a TLS handshake. */
  async connectTcp(): Promise<RawClient> {
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
