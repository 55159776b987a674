/** Code points that become one part of a string: an engine limits the arguments of a call. */
const MAX_PART_COUNT = 4_096

const REPLACEMENT = 0xfffd
const BOM = 0xfeff

/** The `TextDecoder` of the Encoding Standard, for UTF-8 alone. */
export class Utf8Decoder {
  readonly encoding = 'utf-8'
  readonly fatal: boolean
  readonly ignoreBOM: boolean
  #codePoint = 0
  #neededCount = 0
  /** Allowed range of the next byte. */
  #lower = 0x80
  #upper = 0xbf
  /** The text has begun: what follows is no byte order mark. */
  #hasBegun = false

  /** @throws {RangeError} for another encoding. */
  constructor(label = 'utf-8', options: TextDecoderOptions = {}) {
    if (!/^\s*(unicode-1-1-)?utf-?8\s*$/i.test(label)) throw new RangeError(`no decoder for ${label}`)
    this.fatal = options.fatal ?? false
    this.ignoreBOM = options.ignoreBOM ?? false
  }

  /** @throws {TypeError} for bytes that are not UTF-8, with `fatal`. */
  decode(input: AllowSharedBufferSource = new Uint8Array(), { stream = false }: TextDecodeOptions = {}): string {
    const { buffer, byteOffset, byteLength } = ArrayBuffer.isView(input) ? input : new Uint8Array(input)
    let text = ''
    const part: number[] = []
    const put = (codePoint: number) => {
      const isMark = codePoint === BOM && !this.#hasBegun && !this.ignoreBOM
      this.#hasBegun = true
      if (!isMark) part.push(codePoint)
      if (part.length >= MAX_PART_COUNT) text += String.fromCodePoint(...part.splice(0))
    }
    try {
      for (const byte of new Uint8Array(buffer, byteOffset, byteLength)) this.#take(byte, put)
      if (!stream && this.#neededCount > 0) this.#fail(put)
    } catch (error) {
      this.#reset()
      throw error
    }
    if (!stream) this.#reset()
    return text + String.fromCodePoint(...part)
  }

  #take(byte: number, put: (codePoint: number) => void): void {
    if (this.#neededCount === 0) {
      this.#begin(byte, put)
    } else if (byte < this.#lower || byte > this.#upper) {
      this.#fail(put)
      this.#begin(byte, put)
    } else {
      this.#lower = 0x80
      this.#upper = 0xbf
      this.#codePoint = (this.#codePoint << 6) | (byte & 0x3f)
      if (--this.#neededCount === 0) put(this.#codePoint)
    }
  }

  #begin(byte: number, put: (codePoint: number) => void): void {
    if (byte < 0x80) put(byte)
    else if (byte < 0xc2 || byte > 0xf4) this.#fail(put)
    else {
      this.#neededCount = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3
      this.#codePoint = byte & (0x3f >> this.#neededCount)
      // No overlong form, no surrogate, nothing beyond U+10FFFF.
      if (byte === 0xe0) this.#lower = 0xa0
      else if (byte === 0xed) this.#upper = 0x9f
      else if (byte === 0xf0) this.#lower = 0x90
      else if (byte === 0xf4) this.#upper = 0x8f
    }
  }

  #fail(put: (codePoint: number) => void): void {
    this.#neededCount = 0
    this.#lower = 0x80
    this.#upper = 0xbf
    if (this.fatal) throw new TypeError('the bytes are not UTF-8')
    put(REPLACEMENT)
  }

  #reset(): void {
    this.#neededCount = 0
    this.#lower = 0x80
    this.#upper = 0xbf
    this.#hasBegun = false
  }
}
