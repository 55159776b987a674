import { randomBytes } from 'node:crypto'
import type { MessageAttributes } from '../ports/attributes.js'
import type { KeyRules } from '../ports/key-rules.js'

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
  readonly rules: KeyRules
  readonly #now: () => number
  /** Differs for every start of every node. */
  readonly #run = randomBytes(RUN_BYTES).toString('base64url')
  #count = 0

  /** @param now Unix time in milliseconds. */
  constructor(rules: KeyRules, now: () => number) {
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
