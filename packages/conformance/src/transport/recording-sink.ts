import type { ConnectionId, TransportSink, UpgradeId, UpgradeRequest } from 'webmq-server/ports'

/** A message with copied bytes, which are valid only during the transport's call. */
export interface ReceivedMessage {
  readonly connection: ConnectionId
  readonly data: Buffer
  readonly isBinary: boolean
}

/** The end of a connection. */
export interface ClosedConnection {
  readonly connection: ConnectionId
  readonly code: number
  readonly reason: string
}

/** Runs after the event was recorded. */
export type SinkHandlers = Partial<TransportSink>

/** A transport sink that records events, and violations of the port's rules. */
export class RecordingSink implements TransportSink {
  readonly upgrades: UpgradeRequest[] = []
  readonly opened = new Map<ConnectionId, UpgradeId>()
  readonly messages: ReceivedMessage[] = []
  readonly closures: ClosedConnection[] = []
  /** Answers to `notifyDrained`. */
  readonly drains: ConnectionId[] = []
  readonly failures: Error[] = []
  /** Violations of the port's rules; empty when there are none. */
  readonly violations: string[] = []
  readonly #handlers: SinkHandlers
  #callDepth = 0

  constructor(handlers: SinkHandlers = {}) {
    this.#handlers = handlers
  }

  /** Runs a call into the transport, during which no event may come. */
  calling<T>(call: () => T): T {
    this.#callDepth++
    try {
      return call()
    } finally {
      this.#callDepth--
    }
  }

  isOpen(connection: ConnectionId): boolean {
    return this.opened.has(connection) && this.closureOf(connection) === undefined
  }

  closureOf(connection: ConnectionId): ClosedConnection | undefined {
    return this.closures.find((closure) => closure.connection === connection)
  }

  textsOf(connection: ConnectionId): string[] {
    return this.messages.filter((message) => message.connection === connection).map(({ data }) => data.toString())
  }

  upgrade(request: UpgradeRequest): void {
    this.#noteCall('upgrade')
    this.upgrades.push(request)
    this.#handlers.upgrade?.(request)
  }

  open(connection: ConnectionId, upgrade: UpgradeId): void {
    this.#noteCall('open')
    if (this.opened.has(connection)) this.violations.push(`connection ${connection} was opened twice`)
    this.opened.set(connection, upgrade)
    this.#handlers.open?.(connection, upgrade)
  }

  message(connection: ConnectionId, data: Uint8Array, isBinary: boolean): void {
    this.#noteCall('message')
    if (!this.isOpen(connection)) this.violations.push(`a message of connection ${connection}, which is not open`)
    this.messages.push({ connection, data: Buffer.from(data), isBinary })
    this.#handlers.message?.(connection, data, isBinary)
  }

  drained(connection: ConnectionId): void {
    this.#noteCall('drained')
    if (!this.isOpen(connection)) this.violations.push(`connection ${connection} was drained, but is not open`)
    this.drains.push(connection)
    this.#handlers.drained?.(connection)
  }

  closed(connection: ConnectionId, code: number, reason: string): void {
    this.#noteCall('closed')
    if (!this.isOpen(connection)) this.violations.push(`connection ${connection} was closed, but is not open`)
    this.closures.push({ connection, code, reason })
    this.#handlers.closed?.(connection, code, reason)
  }

  failed(error: Error): void {
    this.#noteCall('failed')
    this.failures.push(error)
    this.#handlers.failed?.(error)
  }

  #noteCall(name: string): void {
    if (this.#callDepth > 0) this.violations.push(`${name} came from inside a call into the transport`)
  }
}
