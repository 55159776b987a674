/** Numbers have nine digits throughout a run. They keep their width, so only digits are written. */
export const FIRST_SEQ = 100_000_001

const ZERO = 0x30
/** `,"pad":""` */
const PAD_OVERHEAD_BYTES = 9

/** The message that fan-out scenarios publish: `{"t":"fanout_tick","p":{"seq":N,"ts_us":T,…}}`, of an exact size. */
export class TickWriter {
  /** The message of the last `write`; overwritten by the next. */
  readonly bytes: Buffer
  readonly #pad: string
  readonly #seqOffset: number
  readonly #timeOffset: number
  readonly #seqDigits: number
  readonly #timeDigits: number

  /** @param nowUs On the machine's clock; decides the number of digits of times. */
  constructor(payloadBytes: number, nowUs: number) {
    const time = Math.floor(nowUs)
    const bareBytes = textOf(FIRST_SEQ, time, '').length
    if (payloadBytes < bareBytes) throw new RangeError(`a tick has at least ${bareBytes} bytes, not ${payloadBytes}`)
    const padBytes = payloadBytes - bareBytes - PAD_OVERHEAD_BYTES
    this.#pad = padBytes < 0 ? '' : `,"pad":"${'x'.repeat(padBytes)}"`
    const text = textOf(FIRST_SEQ, time, this.#pad)
    // Too short for a pad member: JSON allows spaces after its end.
    this.bytes = Buffer.from(text.padEnd(payloadBytes, ' '))
    this.#seqOffset = text.indexOf('"seq":') + '"seq":'.length
    this.#timeOffset = text.indexOf('"ts_us":') + '"ts_us":'.length
    this.#seqDigits = String(FIRST_SEQ).length
    this.#timeDigits = String(time).length
  }

  /** Makes `bytes` the message of that number and intended time. Cost: about twenty digits, no allocation. */
  write(seq: number, timeUs: number): Buffer {
    writeDigits(this.bytes, this.#seqOffset, this.#seqDigits, seq)
    writeDigits(this.bytes, this.#timeOffset, this.#timeDigits, timeUs)
    return this.bytes
  }

  /** The same message as an object, for servers that need one. */
  object(seq: number, timeUs: number): object {
    const pad = this.#pad === '' ? {} : { pad: this.#pad.slice(PAD_OVERHEAD_BYTES - 1, -1) }
    return { t: 'fanout_tick', p: { seq, ts_us: Math.floor(timeUs), s: 'ES', px: 5234.75, q: 2, ...pad } }
  }
}

function textOf(seq: number, timeUs: number, pad: string): string {
  return `{"t":"fanout_tick","p":{"seq":${seq},"ts_us":${timeUs},"s":"ES","px":5234.75,"q":2${pad}}}`
}

function writeDigits(target: Buffer, offset: number, digits: number, value: number): void {
  let rest = Math.floor(value)
  for (let place = offset + digits - 1; place >= offset; place--) {
    const tenth = Math.floor(rest / 10)
    target[place] = ZERO + (rest - tenth * 10)
    rest = tenth
  }
}
