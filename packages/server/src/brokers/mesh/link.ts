import { isPattern } from 'webmq-client/protocol'
import { Liveness } from '../remote/liveness.js'
import { FRAME, isCounted } from './frames.js'
import { KeyReader } from './key-codec.js'
import type { Peer } from './peer.js'
import { decodeSequence, encodeSequence } from './start-frames.js'
import type { Wire, WireHandler } from './wire.js'

/** A message of a peer. */
export interface PeerMessage {
  readonly key: string
  /** Valid until the call returns. */
  readonly payload: Uint8Array
  readonly isBinary: boolean
}

/** What a link tells. */
export interface LinkEvents {
  message(message: PeerMessage, messageId: string | undefined): void
  /** A message without a valid key has come; it was dropped. */
  malformed(): void
  /** The link has something to send at the end of the turn. */
  dirty(peer: Peer): void
  /** The peer has told all its patterns. */
  ready(peer: Peer): void
  /** The peer knows the patterns of this node. @param mayHaveMissed It has accepted messages before. */
  live(peer: Peer, mayHaveMissed: boolean): void
  /** The peer leaves. @param mayHaveMissed It has accepted messages without knowing the patterns of this node. */
  goodbye(peer: Peer, mayHaveMissed: boolean): void
  /** The connection was lost without a goodbye. */
  lost(peer: Peer, cause: Error): void
}

const NO_BODY = new Uint8Array(0)

/** The connection that carries the streams of a {@link Peer} for now. */
export class Link implements WireHandler {
  readonly wire: Wire
  readonly #peer: Peer
  readonly #events: LinkEvents
  readonly #keys = new KeyReader()
  readonly #liveness: Liveness
  #isAckDue = false
  /** A write is under way; frames that are added meanwhile go out with the next one. */
  #isBusy = false

  constructor(wire: Wire, peer: Peer, heartbeatMs: number, events: LinkEvents) {
    this.wire = wire
    this.#peer = peer
    this.#events = events
    this.#liveness = new Liveness({
      intervalMs: heartbeatMs,
      probe: () => this.#send(FRAME.ping),
      silent: (detail) => this.#fail(detail),
    })
    wire.handler = this
  }

  received(): void {
    this.#liveness.alive()
  }

  frame(type: number, bytes: Buffer, start: number, end: number): void {
    const peer = this.#peer
    if (isCounted(type)) {
      peer.receivedSequence++
      if (!this.#isAckDue) {
        this.#isAckDue = true
        this.#events.dirty(peer)
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
      case FRAME.ack:
        if (!peer.acked(decodeSequence(bytes, start))) this.#fail('it acknowledges what was not sent')
        return
      case FRAME.add:
      case FRAME.remove:
        this.#onPattern(bytes.toString('utf8', start, end), type === FRAME.add)
        return
      case FRAME.ready:
        this.#events.ready(peer)
        return
      case FRAME.live:
        this.#events.live(peer, bytes[start] === 1)
        return
      case FRAME.goodbye:
        this.#events.goodbye(peer, bytes[start] === 1)
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
    this.#events.lost(this.#peer, cause)
  }

  /** The link carries the streams no more; its connection is closed by the caller. */
  stop(): void {
    this.#liveness.stop()
  }

  /** Writes pending frames, unless a write is under way: it then goes out after that. */
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
    this.wire.write(range, () => {
      if (this.#peer.link !== this) return
      this.#isBusy = false
      outbox.wrote()
      this.flush()
    })
  }

  /** Says, after all that is pending, that this node leaves. @param mayHaveMissed See {@link LinkEvents.goodbye}. */
  leave(mayHaveMissed: boolean): void {
    this.#peer.outbox.add(FRAME.goodbye, Uint8Array.of(mayHaveMissed ? 1 : 0))
    this.flush()
  }

  #send(type: number): void {
    this.#peer.outbox.add(type, NO_BODY)
    this.flush()
  }

  #onMessage(bytes: Buffer, start: number, end: number, isBinary: boolean, messageId: string | undefined): void {
    const keyAt = start + 1
    const keyEnd = keyAt + (bytes[start] ?? 0)
    if (keyEnd > end) {
      this.#fail('it sends a message that is too short')
      return
    }
    const key = this.#keys.keyOf(bytes, keyAt, keyEnd)
    if (key === undefined) this.#events.malformed()
    else this.#events.message({ key, payload: bytes.subarray(keyEnd, end), isBinary }, messageId)
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
