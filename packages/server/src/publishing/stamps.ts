import { randomBytes } from 'node:crypto'
import { isKey, matches } from 'webmq-client/protocol'
import type { MessageAttributes } from '../ports/attributes.js'

/** Keys whose answer is cached; a full cache is cleared. */
const MAX_REMEMBERED_KEYS = 10_000

/** The keys whose messages say who published them, and when. */
export class MetaRules {
  readonly #patterns: readonly string[]
  readonly #isForAll: boolean
  readonly #byKey = new Map<string, boolean>()

  /** @param patterns Valid. */
  constructor(patterns: readonly string[]) {
    this.#patterns = patterns
    this.#isForAll = patterns.includes('#')
  }

  /** Without a rule no message is stamped. */
  get isEmpty(): boolean {
    return this.#patterns.length === 0
  }

  /** Whether messages of a key are stamped. Cost: one look-up for a cached key. */
  covers(key: string): boolean {
    if (this.#isForAll) return true
    if (this.#patterns.length === 0) return false
    const known = this.#byKey.get(key)
    if (known !== undefined) return known
    const isCovered = this.#patterns.some((pattern) => matches(pattern, key))
    if (this.#byKey.size >= MAX_REMEMBERED_KEYS) this.#byKey.clear()
    this.#byKey.set(key, isCovered)
    return isCovered
  }

  /** `false` when it is sure that no message which the pattern matches is stamped. */
  mayCover(pattern: string): boolean {
    return isKey(pattern) ? this.covers(pattern) : !this.isEmpty
  }
}

/** Bytes of the name of a node's run: 11 characters of base64url. */
const RUN_BYTES = 8
const COUNT_CHARS = 11

export interface StampedPublish {
  readonly key: string
  /** `undefined` for anonymous clients and for servers. */
  readonly userId: string | undefined
  /** As the broker gets it. */
  readonly messageId: string | undefined
  readonly isEphemeral: boolean
}

/** Stamps messages as their node takes them. Nothing comes from what a client says, but whether it is ephemeral. */
export class Stamps {
  readonly rules: MetaRules
  readonly #now: () => number
  /** Differs for every start of every node. */
  readonly #run = randomBytes(RUN_BYTES).toString('base64url')
  #count = 0

  /** @param now Unix time in milliseconds. */
  constructor(rules: MetaRules, now: () => number) {
    this.rules = rules
    this.#now = now
  }

  /**
   * The attributes of a message; `undefined` when it needs none.
   *
   * The id that is shown is that of the broker, if the publisher gave one: a hash, so nobody learns the publisher's id, and
   * nobody else can publish under it ([P-7.3]).
   */
  of({ key, userId, messageId, isEphemeral }: StampedPublish): MessageAttributes | undefined {
    if (!this.rules.covers(key)) return isEphemeral ? EPHEMERAL : undefined
    const id = messageId ?? this.#newId()
    const stamp = userId === undefined ? { timeMs: this.#now(), id } : { userId, timeMs: this.#now(), id }
    return isEphemeral ? { ...stamp, isEphemeral } : stamp
  }

  #newId(): string {
    return this.#run + (this.#count++).toString(36).padStart(COUNT_CHARS, '0')
  }
}

const EPHEMERAL: MessageAttributes = { isEphemeral: true }
