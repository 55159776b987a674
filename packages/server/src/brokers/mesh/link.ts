import { isPattern } from 'webmq-client/protocol'
import { FRAME, isCounted } from './frames.js'
import { KeyReader } from './key-codec.js'
import { type MarkedMessage, readMarkedHead } from './message-frame.js'
import type { Peer } from './peer.js'
import { decodeSequence, encodeSequence } from './start-frames.js'
import type { Wire, WireHandler } from './wire.js'

/** What a link tells. */
export interface LinkEvents {
  /** A message came: valid until the call returns. */
  message(key: string, payload: Uint8Array, isBinary: boolean): void
  /** The same with what else it has. */
  marked(peer: Peer, message: MarkedMessage, key: string, payload: Uint8Array): void
  /** The peer says something about its log: valid until the call returns. */
  log(peer: Peer, type: number, body: Buffer): void
  /** The peer has taken in what was sent to it. */
  acked(peer: Peer): void
  /** A message came whose key is none; it was dropped. */
  malformed(): void
  /** The link has something to send at the end of the turn. */
  dirty(peer: Peer): void
  /** The peer has told all that it listens to. */
  ready(peer: Peer): void
  /** This node's patterns are known to the peer. */
  live(peer: Peer, mayHaveMissed: boolean): void
  /** The peer leaves. */
  goodbye(peer: Peer): void
  /** The connection is gone without that. */
  lost(peer: Peer, cause: Error): void
}

const NO_BODY = new Uint8Array(0)

/** The connection that carries the streams of a {@link Peer} for now. */
export class Link implements WireHandler {
  readonly wire: Wire
  readonly #peer: Peer
  readonly #events: LinkEvents
  readonly #keys = new KeyReader()
  #isAckDue = false
  /** A write is under way; what comes meanwhile goes out with the next one. */
  #isBusy = false
  #sentAtMs: number
  #heardAtMs: number

  constructor(wire: Wire, peer: Peer, nowMs: number, events: LinkEvents) {
    this.wire = wire
    this.#peer = peer
    this.#events = events
    this.#sentAtMs = nowMs
    this.#heardAtMs = nowMs
    wire.handler = this
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
        this.#onMessage(bytes, start, end, type === FRAME.binary)
        return
      case FRAME.ack:
        if (peer.acked(decodeSequence(bytes, start))) this.#events.acked(peer)
        else this.#fail('it acknowledges what was not sent')
        return
      case FRAME.marked:
        this.#onMarked(bytes, start, end)
        return
      case FRAME.have:
      case FRAME.want:
      case FRAME.hole:
      case FRAME.fed:
      case FRAME.traceStart:
      case FRAME.trace:
      case FRAME.leftOut:
        this.#events.log(peer, type, bytes.subarray(start, end))
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
        this.#events.goodbye(peer)
        return
      case FRAME.heartbeat:
        return
      default:
        this.#fail(`it sends a frame of type ${type}`)
    }
  }

  closed(cause: Error): void {
    this.#events.lost(this.#peer, cause)
  }

  /** Writes what waits, unless a write is under way: it then goes out after that. */
  flush(nowMs: number): void {
    if (this.#isBusy || this.wire.isClosed) return
    const { outbox } = this.#peer
    if (this.#isAckDue) {
      this.#isAckDue = false
      outbox.add(FRAME.ack, encodeSequence(this.#peer.receivedSequence))
    }
    const range = outbox.next()
    if (range === undefined) return
    this.#isBusy = true
    this.#sentAtMs = nowMs
    this.wire.write(range, () => {
      if (this.#peer.link !== this) return
      this.#isBusy = false
      outbox.wrote()
      this.flush(nowMs)
    })
  }

  /** Sends a heartbeat when nothing else was sent for an interval. Returns since when nothing was heard. */
  tick(nowMs: number, heartbeatMs: number): number {
    if (this.wire.isHeard) {
      this.wire.isHeard = false
      this.#heardAtMs = nowMs
    }
    if (nowMs - this.#sentAtMs >= heartbeatMs && !this.#isBusy) {
      this.#peer.outbox.add(FRAME.heartbeat, NO_BODY)
      this.flush(nowMs)
    }
    return nowMs - this.#heardAtMs
  }

  /** Says, after all that waits, that this node leaves. */
  leave(nowMs: number): void {
    this.#peer.outbox.add(FRAME.goodbye, NO_BODY)
    this.flush(nowMs)
  }

  #onMessage(bytes: Buffer, start: number, end: number, isBinary: boolean): void {
    const keyAt = start + 1
    const keyEnd = keyAt + (bytes[start] ?? 0)
    if (keyEnd > end) {
      this.#fail('it sends a message that is too short')
      return
    }
    const key = this.#keys.keyOf(bytes, keyAt, keyEnd)
    if (key === undefined) this.#events.malformed()
    else this.#events.message(key, bytes.subarray(keyEnd, end), isBinary)
  }

  #onMarked(bytes: Buffer, start: number, end: number): void {
    const message = readMarkedHead(bytes, start, end)
    if (message === undefined) {
      this.#fail('it sends a message that is too short')
      return
    }
    const key = this.#keys.keyOf(bytes, message.keyAt, message.keyEnd)
    if (key === undefined) this.#events.malformed()
    else this.#events.marked(this.#peer, message, key, bytes.subarray(message.keyEnd, end))
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
