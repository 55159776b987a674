import { isPattern } from 'webmq-client/protocol'
import { decodeAttributes, type MessageAttributes } from '../../../kernel/ports/attributes.js'
import type { MessageContent } from '../../../kernel/ports/messages.js'
import { Liveness } from '../remote/liveness.js'
import { decodeSequence, encodeSequence, FRAME, isCounted } from './frames.js'
import { KeyReader } from './key-codec.js'
import type { Peer } from './peer.js'
import type { SendBatch } from './send-batch.js'
import type { Wire, WireHandler } from './wire.js'

const NO_BODY = new Uint8Array(0)
const ATTRIBUTES_LENGTH_BYTES = 2
/** While bytes arrive, a node sends something at least this often, to show that it is alive. */
const MAX_QUIET_MS = 100

/** Gets the messages of all peers. */
export interface MessageSink {
  /** @param message Its payload is valid until the call returns. */
  received(message: MessageContent, messageId: string | undefined): void
  /** A message had no valid key, and was dropped. */
  malformed(): void
}

export interface LinkOptions {
  readonly brokerHeartbeatMs: number
  readonly sink: MessageSink
  /** Sends the acknowledgements of a turn. */
  readonly batch: SendBatch
}

/** What a {@link Link} reports of its peer. */
export interface LinkReports {
  /** Called before anything that has arrived is delivered. */
  noteRunning(): void
  /** The peer has sent all its patterns. */
  ready(peer: Peer): void
  /** The peer knows the patterns of this node. @param mayHaveMissed It accepted messages before that. */
  live(peer: Peer, mayHaveMissed: boolean): void
  /** The peer leaves. @param mayHaveMissed It accepted messages without knowing the patterns of this node. */
  goodbye(peer: Peer, mayHaveMissed: boolean): void
  lost(peer: Peer, cause: Error): void
}

/** The connection that currently carries the streams of a {@link Peer}. */
export class Link implements WireHandler {
  readonly wire: Wire
  readonly #peer: Peer
  readonly #reports: LinkReports
  readonly #options: LinkOptions
  readonly #keys = new KeyReader()
  readonly #liveness: Liveness
  #isAckDue = false
  /** A write is pending; frames that are added now go out with the next write. */
  #isBusy = false
  #sentAtMs = performance.now()

  constructor(wire: Wire, peer: Peer, reports: LinkReports, options: LinkOptions) {
    this.wire = wire
    this.#peer = peer
    this.#reports = reports
    this.#options = options
    this.#liveness = new Liveness({
      intervalMs: options.brokerHeartbeatMs,
      probe: () => this.#send(FRAME.ping),
      silent: (detail) => this.#fail(detail),
    })
    wire.handler = this
  }

  received(): void {
    this.#reports.noteRunning()
    this.#liveness.alive()
    // The peer's ping may be queued behind a large frame. It must not mistake that delay for silence.
    if (performance.now() - this.#sentAtMs >= MAX_QUIET_MS) this.#send(FRAME.pong)
  }

  frame(type: number, bytes: Buffer, start: number, end: number): void {
    const peer = this.#peer
    if (isCounted(type)) {
      peer.receivedSequence++
      if (!this.#isAckDue) {
        this.#isAckDue = true
        this.#options.batch.add(peer)
      }
    }
    switch (type) {
      case FRAME.text:
      case FRAME.binary:
        this.#onMessage(bytes, start, end, type === FRAME.binary, undefined)
        return
      case FRAME.textWithId:
      case FRAME.binaryWithId: {
        const idAt = start + 1
        const idEnd = idAt + (bytes[start] ?? 0)
        this.#onMessage(bytes, idEnd, end, type === FRAME.binaryWithId, bytes.toString('utf8', idAt, idEnd))
        return
      }
      case FRAME.textWithAttributes:
      case FRAME.binaryWithAttributes: {
        const attributesAt = start + ATTRIBUTES_LENGTH_BYTES
        const idLengthAt = attributesAt + (bytes[start] ?? 0) + ((bytes[start + 1] ?? 0) << 8)
        const idAt = idLengthAt + 1
        const idEnd = idAt + (bytes[idLengthAt] ?? 0)
        const attributes = idEnd > end ? undefined : decodeAttributes(bytes.subarray(attributesAt, idLengthAt))
        if (attributes === undefined) {
          this.#fail('it sends a message with attributes that are not valid')
          return
        }
        const messageId = idAt === idEnd ? undefined : bytes.toString('utf8', idAt, idEnd)
        this.#onMessage(bytes, idEnd, end, type === FRAME.binaryWithAttributes, messageId, attributes)
        return
      }
      case FRAME.ack:
        if (!peer.acked(decodeSequence(bytes, start))) this.#fail('it acknowledges what was not sent')
        return
      case FRAME.add:
      case FRAME.remove:
        this.#onPattern(bytes.toString('utf8', start, end), type === FRAME.add)
        return
      case FRAME.ready:
        this.#reports.ready(peer)
        return
      case FRAME.live:
        this.#reports.live(peer, bytes[start] === 1)
        return
      case FRAME.goodbye:
        this.#reports.goodbye(peer, bytes[start] === 1)
        return
      case FRAME.ping:
        this.#send(FRAME.pong)
        return
      case FRAME.pong:
        return
      default:
        this.#fail(`it sends a frame of type ${type}`)
    }
  }

  closed(cause: Error): void {
    this.stop()
    this.#reports.lost(this.#peer, cause)
  }

  /** The link no longer carries the streams. The caller closes the connection. */
  stop(): void {
    this.#liveness.stop()
  }

  /** Writes pending frames, after the current write if there is one. */
  flush(): void {
    if (this.#isBusy || this.wire.isClosed) return
    const { outbox } = this.#peer
    if (this.#isAckDue) {
      this.#isAckDue = false
      outbox.add(FRAME.ack, encodeSequence(this.#peer.receivedSequence))
    }
    const range = outbox.next()
    if (range === undefined) return
    this.#isBusy = true
    this.#sentAtMs = performance.now()
    this.wire.write(range, () => {
      if (this.#peer.link !== this) return
      this.#isBusy = false
      outbox.wrote()
      this.flush()
    })
  }

  /** Sends a goodbye behind all pending frames. @param mayHaveMissed See {@link Peers.goodbye}. */
  leave(mayHaveMissed: boolean): void {
    this.#peer.outbox.add(FRAME.goodbye, Uint8Array.of(mayHaveMissed ? 1 : 0))
    this.flush()
  }

  #send(type: number): void {
    this.#peer.outbox.add(type, NO_BODY)
    this.flush()
  }

  #onMessage(
    bytes: Buffer,
    start: number,
    end: number,
    isBinary: boolean,
    messageId: string | undefined,
    attributes?: MessageAttributes,
  ): void {
    const keyAt = start + 1
    const keyEnd = keyAt + (bytes[start] ?? 0)
    if (keyEnd > end) {
      this.#fail('it sends a message that is too short')
      return
    }
    const key = this.#keys.keyOf(bytes, keyAt, keyEnd)
    if (key === undefined) this.#options.sink.malformed()
    else {
      const payload = bytes.subarray(keyEnd, end)
      const message = attributes === undefined ? { key, payload, isBinary } : { key, payload, isBinary, attributes }
      this.#options.sink.received(message, messageId)
    }
  }

  #onPattern(pattern: string, isAdded: boolean): void {
    if (!isPattern(pattern)) this.#fail('it listens with what is no pattern')
    else if (!isAdded) this.#peer.remove(pattern)
    else if (!this.#peer.add(pattern)) this.#fail('it listens with too many patterns')
  }

  #fail(detail: string): void {
    this.wire.fail(new Error(detail))
  }
}
