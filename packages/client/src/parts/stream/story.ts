import { type ErrorCode, WebMQError } from '../../protocol/errors.js'
import type { StreamPlace } from '../../protocol/streams.js'
import type { ReadStatus, StreamPart } from './types.js'

const NO_BYTES = new Uint8Array(0)

/** One stream as far as a reader knows it. */
export class Story {
  readonly id: string | undefined
  /** Number of the last message. */
  sequence = -1
  status: ReadStatus
  isCut = false
  meta: unknown
  result: unknown
  error: WebMQError | undefined
  /** Counts how often everything was replaced. */
  version = 0
  #text = ''
  #bytes = NO_BYTES
  #byteLength: number | undefined

  constructor(id: string | undefined, status: ReadStatus) {
    this.id = id
    this.status = status
  }

  get isEnded(): boolean {
    return !/loading|none|active/.test(this.status)
  }

  get content(): string | Uint8Array {
    return this.#byteLength === undefined ? this.#text : this.#bytes.subarray(0, this.#byteLength)
  }

  /** Replaces everything by these pieces. */
  replace(pieces: readonly unknown[]): void {
    this.version++
    this.#text = ''
    this.#byteLength = undefined
    for (const piece of pieces) this.#add(piece)
  }

  /** Takes the next message. @throws {WebMQError} `E_PAYLOAD_INVALID`. */
  take({ sequence, kind }: StreamPlace, payload: unknown): void {
    this.sequence = sequence
    if (kind === 'start') this.meta = payload
    else if (kind === 'append') this.#add(payload)
    else if (kind === 'close') {
      if (payload !== undefined) this.#add(payload)
      this.end('end')
    } else if (kind === 'delete') this.end('lost')
    else this.end(kind as ReadStatus, payload)
  }

  end(status: ReadStatus, payload?: unknown): void {
    this.status = status
    if (status === 'fail') {
      const { code, message } = Object(payload)
      // Of a peer: `test` would convert an object, and its `toString` may be anything.
      const name = typeof code === 'string' && /^E_[A-Z\d_]{1,40}$/.test(code) ? (code as ErrorCode) : 'E_RESPONSE'
      this.error = new WebMQError(name, typeof message === 'string' ? { message: message.slice(0, 512) } : {})
    } else if (status === 'lost') this.error = new WebMQError('E_STREAM_ENDED', { detail: 'lost' })
    else this.result = payload
  }

  #add(piece: unknown): void {
    if (typeof piece === 'string' && this.#byteLength === undefined) {
      this.#text += piece
      return
    }
    if (!(piece instanceof Uint8Array) || this.#text) throw new WebMQError('E_PAYLOAD_INVALID', { detail: 'stream' })
    const length = this.#byteLength ?? 0
    const end = length + piece.length
    if (end > this.#bytes.length) {
      // Doubled: the whole costs O(bytes). Views that were handed out keep the old memory.
      const bytes = new Uint8Array(Math.max(1_024, end * 2))
      bytes.set(this.#bytes.subarray(0, length))
      this.#bytes = bytes
    }
    this.#bytes.set(piece, length)
    this.#byteLength = end
  }
}

/** Where one user of a reader is in a stream. */
export class Cursor {
  readonly story: Story
  #version = -1
  #at = 0

  constructor(story: Story) {
    this.story = story
  }

  /** What came since the last call; `undefined` if nothing did. */
  next(): StreamPart | undefined {
    const { content, version } = this.story
    const isWhole = version !== this.#version
    const from = isWhole ? 0 : this.#at
    if (content.length === from && !(isWhole && this.#at > 0)) return undefined
    this.#version = version
    this.#at = content.length
    return typeof content === 'string'
      ? { text: content.slice(from), isWhole }
      : { bytes: content.subarray(from), isWhole }
  }
}
