import type { Server } from 'node:http'
import { WebMQError } from 'webmq-client/protocol'
import type {
  AcceptOptions,
  ConnectionId,
  FrameData,
  GroupId,
  GroupOverflow,
  OutboxLevel,
  Rejection,
  Transport,
  TransportAddress,
  TransportSink,
  TransportStats,
  UpgradeId,
} from 'webmq-server/ports'
import { copyFrame } from 'webmq-server/ports'
import { FakeClient } from './fake-client.js'
import type { FakeUpgrade } from './fake-upgrade.js'

interface FakeConnection {
  readonly client: FakeClient
  readonly groups: Set<GroupId>
  isClosing: boolean
  /** `notifyDrained` was called and is not answered. */
  awaitsDrain: boolean
  /** Messages that wait for `resume`; `undefined`: the connection is not paused. */
  held: ((sink: TransportSink) => void)[] | undefined
}

/**
 * A transport without sockets, for tests of the layers above a transport. It follows the port: it calls the sink in
 * order from the event loop, never from inside a call, and overwrites a message's bytes after the call that passed
 * them.
 */
export class FakeTransport implements Transport {
  readonly name = 'fake'
  readonly capabilities = {
    tls: false,
    tlsReload: false,
    attach: true,
    threads: false,
    compression: false,
    pause: true,
    sse: true,
    proxyProtocol: false,
    overflow: false,
    unixSocket: false,
    answers: false,
  }
  readonly #upgrades = new Map<UpgradeId, { client: FakeClient; connection: FakeConnection | undefined }>()
  readonly #connections = new Map<ConnectionId, FakeConnection>()
  readonly #queue: (() => void)[] = []
  #sink: TransportSink | undefined
  #isAccepting = false
  #nextId = 1
  #counts = { accepted: 0, refused: 0, closed: 0, received: 0, delivered: 0 }

  start(sink: TransportSink): Promise<TransportAddress> {
    this.#sink = sink
    this.#isAccepting = true
    return Promise.resolve({ host: '127.0.0.1', port: 1 })
  }

  attach(_server: Server, sink: TransportSink): () => void {
    this.#sink = sink
    this.#isAccepting = true
    return () => {
      this.#isAccepting = false
    }
  }

  /** Requests a connection, as a client would. The client shows the outcome. */
  connect(request: FakeUpgrade = {}): FakeClient {
    const { kind = 'websocket', path = kind === 'sse' ? '/sse' : '/ws', query = '', headers = {} } = request
    const { subprotocols = kind === 'sse' ? [] : ['webmq.v1'], remoteAddress = '127.0.0.1' } = request
    if (!this.#isAccepting) throw new WebMQError('E_CONNECT_FAILED')
    const upgrade = this.#nextId++ as UpgradeId
    const client: FakeClient = new FakeClient({
      receive: (data, isBinary) => this.#receive(upgrade, data, isBinary),
      drop: (code, reason) => this.#drop(upgrade, code, reason),
      readOn: () => this.#answerDrain(upgrade),
    })
    this.#upgrades.set(upgrade, { client, connection: undefined })
    const header = (name: string) => headers[name] ?? (name === 'host' ? 'localhost' : undefined)
    const peer = { remoteAddress, remotePort: 50_000 }
    this.#enqueue((sink) => sink.upgrade({ id: upgrade, kind, path, query, headers, header, subprotocols, ...peer }))
    return client
  }

  accept(upgrade: UpgradeId, { subprotocol }: AcceptOptions = {}): void {
    const pending = this.#upgrades.get(upgrade)
    if (pending === undefined || pending.connection !== undefined) return
    const id = this.#nextId++ as ConnectionId
    const connection: FakeConnection = {
      client: pending.client,
      groups: new Set(),
      isClosing: false,
      awaitsDrain: false,
      held: undefined,
    }
    pending.connection = connection
    pending.client.subprotocol = subprotocol
    this.#connections.set(id, connection)
    this.#counts.accepted++
    this.#enqueue((sink) => {
      pending.client.isOpen = true
      sink.open(id, upgrade)
    })
  }

  reject(upgrade: UpgradeId, rejection: Rejection): void {
    const pending = this.#upgrades.get(upgrade)
    if (pending === undefined) return
    this.#upgrades.delete(upgrade)
    this.#counts.refused++
    pending.client.rejection = rejection
    pending.client.onClosed?.(1006)
  }

  join(connection: ConnectionId, group: GroupId): void {
    this.#connections.get(connection)?.groups.add(group)
  }

  /** What was said about groups; `send` leaves nothing out. */
  readonly overflows = new Map<GroupId, GroupOverflow>()

  setOverflow(group: GroupId, overflow: GroupOverflow | undefined): void {
    if (overflow === undefined) this.overflows.delete(group)
    else this.overflows.set(group, overflow)
  }

  leave(connection: ConnectionId, group: GroupId): void {
    this.#connections.get(connection)?.groups.delete(group)
  }

  multicast(groups: readonly GroupId[], data: FrameData, isBinary: boolean, except?: ConnectionId): void {
    for (const [id, connection] of this.#connections) {
      if (id !== except && groups.some((group) => connection.groups.has(group))) this.send(id, data, isBinary)
    }
  }

  send(id: ConnectionId, data: FrameData, isBinary: boolean): void {
    const connection = this.#connections.get(id)
    if (connection === undefined || connection.isClosing) return
    this.#counts.delivered++
    const bytes = new Uint8Array(copyFrame(data))
    connection.client.take(isBinary ? bytes : new TextDecoder().decode(bytes), isBinary)
  }

  /** A client that has stopped to read is drained when it reads on; every other one is at once. */
  notifyDrained(id: ConnectionId, _level: OutboxLevel): void {
    const connection = this.#connections.get(id)
    if (connection === undefined) return
    connection.awaitsDrain = true
    for (const [upgrade, pending] of this.#upgrades) if (pending.connection === connection) this.#answerDrain(upgrade)
  }

  /** Messages that the client sends from now on wait until {@link resume}. */
  pause(id: ConnectionId): void {
    const connection = this.#connections.get(id)
    if (connection !== undefined) connection.held ??= []
  }

  resume(id: ConnectionId): void {
    const connection = this.#connections.get(id)
    const held = connection?.held
    if (connection === undefined || held === undefined) return
    connection.held = undefined
    for (const event of held) this.#enqueue(event)
  }

  /** Whether the connection of this client is paused. */
  isPaused(client: FakeClient): boolean {
    for (const connection of this.#connections.values())
      if (connection.client === client) return connection.held !== undefined
    return false
  }

  close(id: ConnectionId, code: number, reason: string): void {
    const connection = this.#connections.get(id)
    if (connection === undefined || connection.isClosing) return
    connection.isClosing = true
    connection.client.closure = { code, reason }
    connection.client.onClosed?.(code)
    this.#enqueue(() => this.#end(id, code, reason))
  }

  stats(): TransportStats {
    const { accepted, refused, closed, received, delivered } = this.#counts
    return {
      connections: this.#connections.size,
      acceptedCount: accepted,
      refusedCount: refused,
      fullCount: 0,
      connectionLimit: Number.POSITIVE_INFINITY,
      proxyHeaderRefusedCount: 0,
      closedCount: closed,
      slowConsumerCount: 0,
      conflatedCount: 0,
      droppedCount: 0,
      receivedMessageCount: received,
      answeredMessageCount: 0,
      receivedByteCount: 0,
      deliveredCount: delivered,
      sentByteCount: 0,
      partialBytes: 0,
      restartedThreadCount: 0,
      outboxBytes: 0,
    }
  }

  stopAccepting(): Promise<void> {
    this.#isAccepting = false
    return Promise.resolve()
  }

  async stop(): Promise<void> {
    this.#isAccepting = false
    for (const id of this.#connections.keys()) this.close(id, 1001, 'going away')
    await this.settled()
  }

  /** Resolves when the sink has received all events. */
  async settled(): Promise<void> {
    while (this.#queue.length > 0) {
      await new Promise((resolve) => {
        setImmediate(resolve)
      })
    }
  }

  #receive(upgrade: UpgradeId, data: Uint8Array, isBinary: boolean): void {
    const held = this.#upgrades.get(upgrade)?.connection?.held
    const receive = (sink: TransportSink) => this.#deliver(sink, upgrade, data, isBinary)
    if (held === undefined) this.#enqueue(receive)
    else held.push(receive)
  }

  #deliver(sink: TransportSink, upgrade: UpgradeId, data: Uint8Array, isBinary: boolean): void {
    const connection = this.#upgrades.get(upgrade)?.connection
    const id = connection === undefined ? undefined : this.#idOf(connection)
    if (id === undefined || connection?.isClosing) return
    this.#counts.received++
    try {
      sink.message(id, data, isBinary)
    } catch (error) {
      this.close(id, 4011, 'internal error')
      sink.failed(error instanceof Error ? error : new Error(String(error)))
    }
    data.fill(0)
  }

  #answerDrain(upgrade: UpgradeId): void {
    this.#enqueue((sink) => {
      const connection = this.#upgrades.get(upgrade)?.connection
      const id = connection === undefined ? undefined : this.#idOf(connection)
      if (connection === undefined || id === undefined || !connection.awaitsDrain || !connection.client.isReading)
        return
      connection.awaitsDrain = false
      sink.drained(id)
    })
  }

  #drop(upgrade: UpgradeId, code: number, reason: string): void {
    this.#enqueue(() => {
      const connection = this.#upgrades.get(upgrade)?.connection
      const id = connection === undefined ? undefined : this.#idOf(connection)
      this.#upgrades.delete(upgrade)
      if (id !== undefined) this.#end(id, code, reason)
    })
  }

  #end(id: ConnectionId, code: number, reason: string): void {
    const connection = this.#connections.get(id)
    if (connection === undefined) return
    this.#connections.delete(id)
    connection.client.isOpen = false
    this.#counts.closed++
    this.#sink?.closed(id, code, reason)
  }

  #idOf(connection: FakeConnection): ConnectionId | undefined {
    for (const [id, other] of this.#connections) if (other === connection) return id
    return undefined
  }

  /** At most one event per turn of the loop, so that microtasks run as with a real transport: after each batch. */
  #enqueue(event: (sink: TransportSink) => void): void {
    this.#queue.push(() => {
      if (this.#sink !== undefined) event(this.#sink)
    })
    if (this.#queue.length === 1) setImmediate(() => this.#drain())
  }

  #drain(): void {
    const batch = this.#queue.slice()
    for (const event of batch) event()
    this.#queue.splice(0, batch.length)
    if (this.#queue.length > 0) setImmediate(() => this.#drain())
  }
}
