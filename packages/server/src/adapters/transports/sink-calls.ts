import { WebMQError } from 'webmq-client/protocol'
import type { MessageRun } from '../../kernel/ports/message-run.js'
import type { ConnectionId, TransportSink, UpgradeId, UpgradeRequest } from '../../kernel/ports/transport.js'

/**
 * Calls the sink by the rules of the port: never from within a call to the transport, and errors are caught.
 *
 * `upgrade` and `message` come from the event loop only. A call to the transport may cause `open`, `closed` and
 * `failed`. They run later, but before the next callback of the library, so no message overtakes its `open`.
 */
export class SinkCalls {
  readonly #sink: TransportSink
  readonly #later: (call: () => void) => void
  readonly #onThrow: (connection: ConnectionId) => void
  messageCount = 0
  byteCount = 0

  /**
   * @param onThrow Called when the sink threw on an event of a connection; the caller closes it.
   * @param later Runs a call in order, before the next callback of the library.
   */
  constructor(
    sink: TransportSink,
    onThrow: (connection: ConnectionId) => void,
    later: (call: () => void) => void = queueMicrotask,
  ) {
    this.#sink = sink
    this.#onThrow = onThrow
    this.#later = later
  }

  isOf(sink: TransportSink): boolean {
    return this.#sink === sink
  }

  /** @returns Whether the sink accepted it without an error. */
  upgrade(request: UpgradeRequest): boolean {
    try {
      this.#sink.upgrade(request)
      return true
    } catch (error) {
      this.fail(error)
      return false
    }
  }

  open(connection: ConnectionId, upgrade: UpgradeId): void {
    this.#later(() => this.#guard(connection, () => this.#sink.open(connection, upgrade)))
  }

  message(connection: ConnectionId, data: Uint8Array, isBinary: boolean): void {
    this.messageCount++
    this.byteCount += data.byteLength
    // Not through `#guard`, to avoid a closure per message.
    try {
      this.#sink.message(connection, data, isBinary)
    } catch (error) {
      this.fail(error)
      this.#onThrow(connection)
    }
  }

  /** Messages that arrived together; one by one if the sink takes no runs. */
  messageRun(connection: ConnectionId, run: MessageRun): void {
    try {
      if (this.#sink.messageRun !== undefined) this.#sink.messageRun(connection, run)
      else while (run.next()) this.#sink.message(connection, run.bytes.subarray(run.start, run.end), run.isBinary)
    } catch (error) {
      this.fail(error)
      this.#onThrow(connection)
    }
  }

  drained(connection: ConnectionId): void {
    this.#later(() => this.#guard(connection, () => this.#sink.drained(connection)))
  }

  closed(connection: ConnectionId, code: number, reason: string): void {
    this.#later(() => this.#guard(connection, () => this.#sink.closed(connection, code, reason)))
  }

  fail(cause: unknown): void {
    const isKnown = cause instanceof WebMQError && cause.code === 'E_TRANSPORT_FAILED'
    const detail = 'the sink threw or misused the transport'
    this.failed(isKnown ? cause : new WebMQError('E_TRANSPORT_FAILED', { detail, cause }))
  }

  failed(error: Error): void {
    this.#later(() => this.#sink.failed(error))
  }

  /** Resolves when all calls so far have been made. */
  settled(): Promise<void> {
    return new Promise((resolve) => this.#later(resolve))
  }

  #guard(connection: ConnectionId, call: () => void): void {
    try {
      call()
    } catch (error) {
      this.fail(error)
      this.#onThrow(connection)
    }
  }
}
