import { ERRORS, WebMQError } from 'webmq-client/protocol'
import type { MessageRun } from '../../ports/message-run.js'
import type { ConnectionId, TransportSink, UpgradeId, UpgradeRequest } from '../../ports/transport.js'
import type { NativeCommands } from './commands.js'

/** Calls the sink and catches its errors: the connection is closed, and the error is reported. */
export class NativeSinkCalls {
  readonly #sink: TransportSink
  readonly #commands: NativeCommands

  constructor(sink: TransportSink, commands: NativeCommands) {
    this.#sink = sink
    this.#commands = commands
  }

  /** Returns `false` if the sink threw; the upgrade is then refused. */
  upgrade(request: UpgradeRequest): boolean {
    try {
      this.#sink.upgrade(request)
      return true
    } catch (error) {
      this.#commands.reject(request.id, { status: 500, body: 'E_INTERNAL: internal error\n' })
      this.#threw(error)
      return false
    }
  }

  open(connection: ConnectionId, upgrade: UpgradeId): void {
    try {
      this.#sink.open(connection, upgrade)
    } catch (error) {
      this.#close(connection)
      this.#threw(error)
    }
  }

  messageRun(connection: ConnectionId, run: MessageRun): void {
    try {
      if (this.#sink.messageRun !== undefined) this.#sink.messageRun(connection, run)
      else while (run.next()) this.#sink.message(connection, run.bytes.subarray(run.start, run.end), run.isBinary)
    } catch (error) {
      this.#close(connection)
      this.#threw(error)
    }
  }

  drained(connection: ConnectionId): void {
    try {
      this.#sink.drained(connection)
    } catch (error) {
      this.#close(connection)
      this.#threw(error)
    }
  }

  closed(connection: ConnectionId, code: number, reason: string): void {
    try {
      this.#sink.closed(connection, code, reason)
    } catch (error) {
      this.#threw(error)
    }
  }

  failed(error: Error): void {
    this.#sink.failed(error)
  }

  /** Whether events go to this sink. */
  isOf(sink: TransportSink): boolean {
    return this.#sink === sink
  }

  #close(connection: ConnectionId): void {
    this.#commands.close(connection, ERRORS.E_INTERNAL.closeCode, 'E_INTERNAL')
  }

  #threw(cause: unknown): void {
    this.#sink.failed(new WebMQError('E_TRANSPORT_FAILED', { detail: 'the sink threw', cause }))
  }
}
