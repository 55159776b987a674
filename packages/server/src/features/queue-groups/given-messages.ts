import type { DedupeOptions } from '../../kernel/ports/dedupe-window.js'

interface Given {
  readonly atMs: number
  /** Numbers of the queue groups that have it. */
  readonly groups: number[]
}

/** Queue groups that are remembered per message id, on average over all ids. */
const MAX_GROUPS_PER_ID = 16

/**
 * Which queue groups have got the message with an id. The last `dedupeMaxIds` messages at least are remembered for
 * `dedupeWindowMs`, however many groups get each: many groups of one key do not push out the ids of others.
 */
export class GivenMessages {
  readonly #windowMs: number
  readonly #maxIds: number
  #recent = new Map<string, Given>()
  /** Those before, until there are as many again. */
  #former = new Map<string, Given>()
  #sinceMs = 0
  /** Groups that were remembered since then, over all ids. */
  #groupCount = 0

  constructor({ dedupeWindowMs, dedupeMaxIds }: DedupeOptions) {
    this.#windowMs = dedupeWindowMs
    this.#maxIds = dedupeMaxIds
  }

  get isOn(): boolean {
    return this.#windowMs > 0 && this.#maxIds > 0
  }

  has(messageId: string, group: number, nowMs: number): boolean {
    return this.#find(messageId, nowMs)?.groups.includes(group) === true
  }

  remember(messageId: string, group: number, nowMs: number): void {
    if (!this.isOn) return
    const isOver = this.#recent.size >= this.#maxIds || this.#groupCount >= this.#maxIds * MAX_GROUPS_PER_ID
    if (isOver || nowMs - this.#sinceMs >= this.#windowMs) {
      this.#former = this.#recent
      this.#recent = new Map()
      this.#sinceMs = nowMs
      this.#groupCount = 0
    }
    this.#groupCount++
    const known = this.#find(messageId, nowMs)
    if (known === undefined) this.#recent.set(messageId, { atMs: nowMs, groups: [group] })
    else known.groups.push(group)
  }

  #find(messageId: string, nowMs: number): Given | undefined {
    const given = this.#recent.get(messageId) ?? this.#former.get(messageId)
    return given !== undefined && given.atMs > nowMs - this.#windowMs ? given : undefined
  }
}
