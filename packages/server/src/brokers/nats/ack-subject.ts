/** Words of `$JS.ACK.<stream>.<consumer>.` before what is told of a message, and with the domain and the account that newer servers put in front. */
const HEAD_WORDS = 4
const HEAD_WORDS_WITH_DOMAIN = 6
/** `<deliveries>.<sequence>.<consumer's sequence>.<time>.<pending>` */
const TOLD_WORDS = 5
const [DOT, ZERO] = [0x2e, 0x30]
const NANOSECOND_DIGITS = 6

/**
 * What the subject for the acknowledgement of a message says of it: that is how JetStream tells. The head is the same for all
 * messages of a consumer, and is looked at once.
 */
export class AckSubject {
  /** Place of the message in its stream. */
  sequence = 0
  /** How manyeth of its consumer it is. */
  consumerSequence = 0
  /** When it was stored: Unix time in milliseconds, and the nanoseconds beyond. */
  timeMs = 0
  timeNs = 0
  /** Messages that the consumer has not been sent yet. */
  pendingCount = 0
  #headBytes = 0

  /** @returns whether it is one; else nothing is to be read */
  read(bytes: Buffer, start: number, end: number): boolean {
    if (this.#headBytes === 0) this.#headBytes = headBytesOf(bytes.toString('latin1', start, end))
    if (this.#headBytes === 0) return false
    let at = skipWord(bytes, start + this.#headBytes, end)
    let wordEnd = skipWord(bytes, at, end)
    this.sequence = numberIn(bytes, at, wordEnd - 1)
    at = wordEnd
    wordEnd = skipWord(bytes, at, end)
    this.consumerSequence = numberIn(bytes, at, wordEnd - 1)
    at = wordEnd
    wordEnd = skipWord(bytes, at, end)
    this.timeMs = numberIn(bytes, at, wordEnd - 1 - NANOSECOND_DIGITS)
    this.timeNs = numberIn(bytes, wordEnd - 1 - NANOSECOND_DIGITS, wordEnd - 1)
    at = wordEnd
    wordEnd = skipWord(bytes, at, end)
    this.pendingCount = numberIn(bytes, at, wordEnd - 1)
    return this.sequence > 0
  }
}

/** 0 when it is no such subject. */
function headBytesOf(subject: string): number {
  const words = subject.split('.')
  if (words[0] !== '$JS' || words[1] !== 'ACK') return 0
  const isShort = words.length === HEAD_WORDS + TOLD_WORDS
  if (!isShort && words.length < HEAD_WORDS_WITH_DOMAIN + TOLD_WORDS) return 0
  const head = words.slice(0, isShort ? HEAD_WORDS : HEAD_WORDS_WITH_DOMAIN)
  return head.join('.').length + 1
}

/** Where the next word begins; one behind the end and its dot when there is none. */
function skipWord(bytes: Buffer, start: number, end: number): number {
  let at = start
  while (at < end && bytes[at] !== DOT) at++
  return at + 1
}

function numberIn(bytes: Buffer, start: number, end: number): number {
  let number = 0
  for (let at = start; at < end; at++) number = number * 10 + (bytes[at] as number) - ZERO
  return number
}
