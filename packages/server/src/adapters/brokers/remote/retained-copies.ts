import type { OutboundMessage } from '../../../kernel/ports/broker.js'
import type { RetainedMessage, RetainedSet } from '../log/retained-set.js'

export interface RetainedCopiesOptions {
  readonly maxMessages: number
  readonly maxBytes: number
  /** Between 0 and 1. */
  readonly random: () => number
  /**
   * Logs a copy of a message, whose attributes say so. Resolves when the log has it, rejects when it may not.
   */
  readonly copy: (message: OutboundMessage) => Promise<unknown>
}

/** Where the log has a retained message, or its newest copy. */
interface LogRecord {
  readonly key: string
  readonly offset: number
  /** Bytes that the log has taken before it. */
  readonly atBytes: number
}

/** A message is copied when it is further from the end of the log than this share of it. The nodes choose at random. */
const MAX_AGE_SHARE = 1 / 2
/** The node with the lowest limit usually copies everything, and the others have nothing to do. */
const MIN_AGE_SHARE = 1 / 3
/** Copies on their way to the broker. */
const MAX_PENDING = 64
/** Estimate of what a broker stores for a message beside its payload. */
const MESSAGE_OVERHEAD_BYTES = 512

/**
 * Keeps retained messages in the broker's log. Before the log drops one, a node logs a copy of it. So the log of the
 * broker alone has the whole state at any time, and a node that starts needs nothing else.
 */
export class RetainedCopies {
  readonly #options: RetainedCopiesOptions
  readonly #ageShare: number
  /** In the order of the log. Messages that were replaced since stay until they are oldest. */
  #records: LogRecord[] = []
  #head = 0
  #byteCount = 0
  #lastOffset = 0
  #pendingCount = 0
  #isScheduled = false
  #set: RetainedSet | undefined
  /** To copy at once: an outdated copy stands behind them in the log. */
  readonly #urgent = new Set<string>()

  constructor(options: RetainedCopiesOptions) {
    this.#options = options
    this.#ageShare = MIN_AGE_SHARE + options.random() * (MAX_AGE_SHARE - MIN_AGE_SHARE)
  }

  begin(set: RetainedSet | undefined): void {
    this.#set = set
    this.#records = []
    this.#head = 0
    this.#urgent.clear()
  }

  /** The log has a message, or a copy, at this offset. */
  logged(key: string, payloadBytes: number, offset: number): void {
    this.#byteCount += payloadBytes + key.length + MESSAGE_OVERHEAD_BYTES
    this.#lastOffset = offset
    if (this.#set?.get(key)?.recordOffset === offset) this.#records.push({ key, offset, atBytes: this.#byteCount })
    this.#dropReplaced()
    if (this.#urgent.size > 0 || this.#isDue()) this.#schedule()
  }

  /** The log has a copy that is out of date, and this node has written it. */
  outdated(key: string): void {
    this.#urgent.add(key)
    this.#schedule()
  }

  #isDue(): boolean {
    const record = this.#records[this.#head]
    if (record === undefined) return false
    const { maxMessages, maxBytes } = this.#options
    return (
      this.#lastOffset - record.offset > maxMessages * this.#ageShare ||
      this.#byteCount - record.atBytes > maxBytes * this.#ageShare
    )
  }

  /** The sink of the broker MUST NOT be called from inside a delivery, and neither may the broker. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#copyDue()
    })
  }

  #copyDue(): void {
    for (const key of this.#urgent) {
      if (this.#pendingCount >= MAX_PENDING) return
      this.#urgent.delete(key)
      const message = this.#set?.get(key)
      if (message !== undefined) this.#copy(message)
    }
    while (this.#pendingCount < MAX_PENDING && this.#isDue()) {
      const record = this.#records[this.#head++] as LogRecord
      const message = this.#current(record)
      if (message !== undefined) this.#copy(message, record)
    }
    this.#dropReplaced()
  }

  #copy(message: RetainedMessage, record?: LogRecord): void {
    this.#pendingCount++
    const { key, payload, isBinary, offset, fingerprint } = message
    const attributes = { ...message.attributes, copyOf: offset, copyFingerprint: fingerprint }
    // The set may give up the payload of its own entry while the copy waits.
    this.#options.copy({ key, payload, isBinary, attributes }).then(
      () => {
        this.#pendingCount--
        if (this.#urgent.size > 0 || this.#isDue()) this.#schedule()
      },
      () => {
        // The log may not have it. The next message that is logged asks again: without one, the log drops nothing.
        this.#pendingCount--
        if (record === undefined) this.#urgent.add(key)
        else if (this.#current(record) !== undefined) this.#again(record)
      },
    )
  }

  #again(record: LogRecord): void {
    if (this.#head > 0) this.#records[--this.#head] = record
    else this.#records.unshift(record)
  }

  /** The message, if the log has no newer one and no newer copy. A removal needs no copy: it leaves nothing to keep. */
  #current({ key, offset }: LogRecord): RetainedMessage | undefined {
    const message = this.#set?.get(key)
    return message?.recordOffset === offset && message.payload.length > 0 ? message : undefined
  }

  /** Cuts the list when half of it is used. Amortised O(1). */
  #dropReplaced(): void {
    while (this.#head < this.#records.length && this.#current(this.#records[this.#head] as LogRecord) === undefined)
      this.#head++
    if (this.#head * 2 < this.#records.length) return
    this.#records = this.#records.slice(this.#head)
    this.#head = 0
  }
}
