import { MAX_KEY_BYTES, MAX_POSITION_CHARS } from './limits.js'
import { digitCountOf, putOffset } from './offset.js'
import { FINGERPRINT_BYTES, type MessagePosition, putFingerprint } from './position.js'

const NEWLINE = 0x0a
const VERB = Uint8Array.from('message ', (char) => char.charCodeAt(0))

const encoder = new TextEncoder()

/**
 * A `message` with its payload, written as bytes for a frame of either kind: the fan-out path. Reuse one object for one
 * message after another.
 *
 * Cost: O(bytes), without allocation per message. The bytes of a key and its epoch are kept until others come.
 */
export class MessageFrame {
  /** `message <key> <epoch>:`, or `message <key> -`. */
  readonly #head = new Uint8Array(VERB.length + MAX_KEY_BYTES + 1 + MAX_POSITION_CHARS)
  #headLength = 0
  #key = ''
  #epoch: string | undefined
  #position: MessagePosition | undefined
  #options = ''
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
   * @param meta Further options, see {@link encodeMeta}.
   */
  fill(key: string, position: MessagePosition | undefined, isReplayed: boolean, payload: Uint8Array, meta = ''): this {
    const epoch = position?.epoch
    if (key !== this.#key || epoch !== this.#epoch) this.#setHead(key, epoch)
    this.#position = position
    this.#options = isReplayed ? ` replay${meta}` : meta
    this.#payload = payload
    const placeLength = position === undefined ? 0 : digitCountOf(position.offset) + FINGERPRINT_BYTES
    this.#byteLength = this.#headLength + placeLength + this.#options.length + 1 /* newline */ + payload.length
    return this
  }

  /** Writes `byteLength` bytes into `target` from `start` on. */
  writeTo(target: Uint8Array, start: number): void {
    const head = this.#head
    const headLength = this.#headLength
    // A loop: for so few bytes a call of `set` costs more.
    for (let index = 0; index < headLength; index++) target[start + index] = head[index] ?? 0
    let at = start + headLength
    const position = this.#position
    if (position !== undefined)
      at = putFingerprint(target, putOffset(target, at, position.offset), position.fingerprint)
    const options = this.#options
    for (let index = 0; index < options.length; index++) target[at++] = options.charCodeAt(index)
    target[at] = NEWLINE
    target.set(this.#payload, at + 1)
  }

  #setHead(key: string, epoch: string | undefined): void {
    this.#key = key
    this.#epoch = epoch
    const text = epoch === undefined ? `${key} -` : `${key} ${epoch}:`
    this.#headLength = VERB.length + encoder.encodeInto(text, this.#head.subarray(VERB.length)).written
  }
}

const frame = new MessageFrame()

/** Returns a message as bytes of its own, outside the fan-out path. */
export function encodeMessageFrame(
  key: string,
  position: MessagePosition | undefined,
  isReplayed: boolean,
  payload: Uint8Array,
  meta = '',
): Uint8Array {
  const { byteLength } = frame.fill(key, position, isReplayed, payload, meta)
  const bytes = new Uint8Array(byteLength)
  frame.writeTo(bytes, 0)
  return bytes
}

/** The header line of a `message`, including its newline. */
export function messageHeader(key: string, position: string | undefined, isReplayed: boolean, meta = ''): string {
  return `message ${key} ${position ?? '-'}${isReplayed ? ' replay' : ''}${meta}\n`
}
