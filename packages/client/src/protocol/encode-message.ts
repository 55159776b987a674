import { MAX_KEY_BYTES } from './limits.js'
import { digitCountOf, putOffset } from './offset.js'

const SPACE = 0x20
const DASH = 0x2d
const NEWLINE = 0x0a
const VERB = Uint8Array.from('message ', (char) => char.charCodeAt(0))
const REPLAY = Uint8Array.from(' replay', (char) => char.charCodeAt(0))

const encoder = new TextEncoder()

/** Position of a message: the offset of a relative position [P-8.8], the text of a full one, or none. */
export type MessagePosition = number | string | undefined

/**
 * A `message` with its payload, written as bytes for a frame of either kind: the fan-out path. Reuse one object for one
 * message after another.
 *
 * Cost: O(bytes), without allocation per message. The bytes of a key are kept until another key comes.
 */
export class MessageFrame {
  /** `message <key> `. */
  readonly #head = new Uint8Array(VERB.length + MAX_KEY_BYTES + 1)
  #headLength = 0
  #key = ''
  #position: MessagePosition
  #isReplayed = false
  #payload: Uint8Array = VERB
  #byteLength = 0

  constructor() {
    this.#head.set(VERB)
  }

  /** Bytes of the whole message. */
  get byteLength(): number {
    return this.#byteLength
  }

  /**
   * Replaces the content.
   * @param key Must be valid, like the position.
   * @param payload Borrowed until the message is written; not parsed.
   */
  fill(key: string, position: MessagePosition, isReplayed: boolean, payload: Uint8Array): this {
    if (key !== this.#key) this.#setKey(key)
    this.#position = position
    this.#isReplayed = isReplayed
    this.#payload = payload
    const positionLength =
      typeof position === 'number' ? digitCountOf(position) : position === undefined ? 1 : position.length
    this.#byteLength =
      this.#headLength + positionLength + (isReplayed ? REPLAY.length : 0) + 1 /* newline */ + payload.length
    return this
  }

  /** Writes `byteLength` bytes into `target` from `start` on. */
  writeTo(target: Uint8Array, start: number): void {
    const head = this.#head
    const headLength = this.#headLength
    // A loop: for so few bytes a call of `set` costs more.
    for (let index = 0; index < headLength; index++) target[start + index] = head[index] ?? 0
    let at = putPosition(target, start + headLength, this.#position)
    if (this.#isReplayed) {
      target.set(REPLAY, at)
      at += REPLAY.length
    }
    target[at] = NEWLINE
    target.set(this.#payload, at + 1)
  }

  #setKey(key: string): void {
    this.#key = key
    const { written } = encoder.encodeInto(key, this.#head.subarray(VERB.length))
    const end = VERB.length + written
    this.#head[end] = SPACE
    this.#headLength = end + 1
  }
}

const frame = new MessageFrame()

/** Returns a message as bytes of its own, outside the fan-out path. */
export function encodeMessageFrame(
  key: string,
  position: MessagePosition,
  isReplayed: boolean,
  payload: Uint8Array,
): Uint8Array {
  const { byteLength } = frame.fill(key, position, isReplayed, payload)
  const bytes = new Uint8Array(byteLength)
  frame.writeTo(bytes, 0)
  return bytes
}

/** The header line of a `message`, including its newline. */
export function messageHeader(key: string, position: string | undefined, isReplayed: boolean): string {
  return `message ${key} ${position ?? '-'}${isReplayed ? ' replay' : ''}\n`
}

/** Writes a position; returns where it ends. */
function putPosition(target: Uint8Array, start: number, position: MessagePosition): number {
  if (typeof position === 'number') return putOffset(target, start, position)
  if (position === undefined) {
    target[start] = DASH
    return start + 1
  }
  for (let index = 0; index < position.length; index++) target[start + index] = position.charCodeAt(index)
  return start + position.length
}
