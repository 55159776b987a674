import { WebMQError } from 'webmq-client/protocol'
import { copyBytes } from '../../../kernel/base/copy-bytes.js'
import type { MessageAttributes } from '../../../kernel/ports/attributes.js'
import type { RetainedStats } from '../../../kernel/ports/broker-stats.js'
import type { RetainRules } from '../../../kernel/ports/retain-rules.js'
import { isState } from '../../../kernel/ports/roll-up.js'
import type { StepBudget } from './pattern-matcher.js'
import type { Wants } from './segmented-log.js'

/** The last message of a key. Without a payload, the key was removed. */
export interface RetainedMessage {
  readonly key: string
  /** Never written again. */
  readonly payload: Uint8Array
  readonly isBinary: boolean
  /** Of the message itself, not of a later copy. */
  readonly offset: number
  readonly fingerprint: number
  readonly attributes: MessageAttributes | undefined
}

interface Entry extends RetainedMessage {
  /** Empty once it is replaced. */
  payload: Uint8Array
  /** Where the log has the message, or the newest copy of it. */
  recordOffset: number
  isReplaced: boolean
}

/**
 * The bounds of what nodes accept are exact on each node. Two nodes may accept a key each at the same time, and other
 * programs ask nobody. So the log may bring more; beyond this share it is not retained.
 */
const EXCESS_SHARE = 1.5
/** Places of replaced messages are removed when they outnumber the others by this. */
const MIN_REPLACED = 1_024
/** Steps to look at a message, and to return it, as in `segmented-log.ts`. */
const LOOK_STEPS = 8
const FOUND_STEPS = 8

/**
 * The last message of each retained key, as the log has brought them. In order of offsets, so it reads like a log in
 * which each key has only its newest message. Removed keys stay as such for some time: whoever reads on from an earlier
 * position learns that they are gone.
 */
export class RetainedSet {
  readonly #rules: RetainRules
  readonly #byKey = new Map<string, Entry>()
  /** In order of their offsets, with replaced ones in between. */
  #entries: Entry[] = []
  #replacedCount = 0
  readonly #reservations = new Reservations()
  #keyCount = 0
  #byteCount = 0
  /** Offsets of removals, oldest first; those of keys that came back stay until they are dropped. */
  #removals: Entry[] = []
  /** Whoever knew all keys at or after this offset learns of all later removals. */
  removalsCompleteAfter: number
  #droppedCount = 0
  readonly #startOffset: number

  /** @param startOffset The set knows every message after this offset. */
  constructor(rules: RetainRules, startOffset: number) {
    this.#rules = rules
    this.#startOffset = startOffset
    this.removalsCompleteAfter = startOffset
  }

  stats(): RetainedStats {
    return { keyCount: this.#keyCount, byteCount: this.#byteCount, droppedCount: this.#droppedCount }
  }

  /**
   * Makes room for a message that is about to be published.
   * @returns Call it once the message was added or was refused. `undefined`: nothing to call.
   * @throws {WebMQError} `E_STATE_LIMIT`
   */
  reserve(key: string, payloadBytes: number, attributes?: MessageAttributes): (() => void) | undefined {
    if (payloadBytes === 0 || !isState(attributes) || !this.#rules.has(key)) return undefined
    const { maxKeys, maxBytes } = this.#rules.limits
    const present = this.#byKey.get(key)
    const isNew = present === undefined || present.payload.length === 0
    const reserved = this.#reservations
    if (isNew && this.#keyCount + reserved.keyCountWith(key) > maxKeys) {
      throw new WebMQError('E_STATE_LIMIT', { detail: `at most ${maxKeys} keys (retainMaxKeys)` })
    }
    const byteCount = payloadBytes + (isNew ? key.length : -present.payload.length)
    if (byteCount > 0 && this.#byteCount + reserved.byteCount + byteCount > maxBytes) {
      throw new WebMQError('E_STATE_LIMIT', { detail: `at most ${maxBytes} bytes (retainMaxBytes)` })
    }
    return reserved.add(key, isNew, Math.max(0, byteCount))
  }

  /**
   * A message was logged. It replaces the earlier one of its key, or removes the key.
   * @param message Its offset is greater than any before. Its payload is copied.
   * @returns Whether it is retained: the log must keep a copy of it.
   */
  note(message: RetainedMessage): boolean {
    if (!isState(message.attributes) || !this.#rules.has(message.key)) return false
    return this.#put(message, message.offset)
  }

  /**
   * The log has a copy of a retained message.
   * @returns Whether the copy is what this set has. A copy that is older than that counts for nothing.
   */
  noteCopy(message: RetainedMessage, recordOffset: number): boolean {
    const { key, offset } = message
    if (!this.#rules.has(key)) return true
    const present = this.#byKey.get(key)
    if (present?.offset === offset) {
      present.recordOffset = recordOffset
      return true
    }
    // The message was logged before this set began, or it would be here, unless it was removed.
    const isNewer = present === undefined ? offset <= this.#startOffset : offset > present.offset
    if (isNewer && (present !== undefined || message.payload.length > 0)) this.#put(message, recordOffset)
    return isNewer
  }

  /** The retained message of a key, or its removal. */
  get(key: string): (RetainedMessage & { readonly recordOffset: number }) | undefined {
    return this.#byKey.get(key)
  }

  /**
   * Adds messages after this offset to `found`, oldest first, until there are `limit` of them.
   * @returns The offset up to which it has looked; `undefined` at the end.
   */
  collect(
    { after, wants, limit }: { readonly after: number; readonly wants: Wants; readonly limit: number },
    found: RetainedMessage[],
    budget: StepBudget,
  ): number | undefined {
    const entries = this.#entries
    let lookedAt = after
    for (let at = indexAfter(entries, after); at < entries.length; at++) {
      if (found.length >= limit || budget.left <= 0) return lookedAt
      const entry = entries[at] as Entry
      lookedAt = entry.offset
      budget.left -= LOOK_STEPS
      if (entry.isReplaced || !wants(entry.key, Number.POSITIVE_INFINITY, budget)) continue
      budget.left -= FOUND_STEPS
      const { key, payload, isBinary, offset, fingerprint, attributes } = entry
      found.push({ key, payload, isBinary, offset, fingerprint, attributes })
    }
    return undefined
  }

  #put(message: RetainedMessage, recordOffset: number): boolean {
    const { key, payload } = message
    const present = this.#byKey.get(key)
    const isRemoval = payload.length === 0
    const had = present !== undefined && present.payload.length > 0
    const keyCount = this.#keyCount + (isRemoval ? 0 : 1) - (had ? 1 : 0)
    const added = isRemoval ? 0 : payload.length + key.length
    const byteCount = this.#byteCount + added - (had ? present.payload.length + key.length : 0)
    const { maxKeys, maxBytes } = this.#rules.limits
    const isTooMuch = !isRemoval && (keyCount > maxKeys * EXCESS_SHARE || byteCount > maxBytes * EXCESS_SHARE)
    if (isTooMuch) this.#droppedCount++
    // What it replaces is out of date in any case.
    if (isTooMuch && had) this.#put({ ...message, payload: NOTHING }, recordOffset)
    if (isTooMuch) return false
    this.#keyCount = keyCount
    this.#byteCount = byteCount
    if (present !== undefined) this.#replace(present)
    const { isBinary, offset, fingerprint, attributes } = message
    const kept = { key, payload: copyBytes(payload), isBinary, offset, fingerprint, attributes }
    const entry = { ...kept, recordOffset, isReplaced: false }
    this.#byKey.set(key, entry)
    this.#insert(entry)
    if (isRemoval) this.#noteRemoval(entry)
    return !isRemoval
  }

  /** Copies come with offsets of the past: only those need a search. */
  #insert(entry: Entry): void {
    const entries = this.#entries
    const last = entries.at(-1)
    if (last === undefined || last.offset < entry.offset) entries.push(entry)
    else entries.splice(indexAfter(entries, entry.offset), 0, entry)
  }

  #noteRemoval(entry: Entry): void {
    this.#removals.push(entry)
    if (this.#removals.length <= 2 * this.#rules.limits.maxKeys) return
    const dropped = this.#removals.splice(0, this.#rules.limits.maxKeys)
    this.removalsCompleteAfter = dropped.at(-1)?.offset ?? this.removalsCompleteAfter
    for (const removal of dropped) {
      if (removal.isReplaced) continue
      this.#byKey.delete(removal.key)
      this.#replace(removal)
    }
  }

  #replace(entry: Entry): void {
    entry.isReplaced = true
    entry.payload = NOTHING
    this.#replacedCount++
    if (this.#replacedCount < MIN_REPLACED || this.#replacedCount * 2 < this.#entries.length) return
    this.#entries = this.#entries.filter(({ isReplaced }) => !isReplaced)
    this.#replacedCount = 0
  }
}

const NOTHING = new Uint8Array(0)

function indexAfter(entries: readonly RetainedMessage[], offset: number): number {
  let low = 0
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((entries[middle]?.offset ?? 0) > offset) high = middle
    else low = middle + 1
  }
  return low
}

/** Room that messages on their way to the broker will take once they are logged. */
class Reservations {
  /** New keys, with the number of their messages on the way. */
  readonly #counts = new Map<string, number>()
  byteCount = 0

  /** Number of new keys on their way, counting this one. */
  keyCountWith(key: string): number {
    return this.#counts.size + (this.#counts.has(key) ? 0 : 1)
  }

  /** @returns Gives the room back; has an effect once. */
  add(key: string, isNew: boolean, byteCount: number): () => void {
    this.byteCount += byteCount
    if (isNew) this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.byteCount -= byteCount
      const left = isNew ? (this.#counts.get(key) ?? 1) - 1 : undefined
      if (left === 0) this.#counts.delete(key)
      else if (left !== undefined) this.#counts.set(key, left)
    }
  }
}
