import { copyBytes } from '../../kernel/base/copy-bytes.js'
import type { Deadlines } from '../../kernel/base/deadlines.js'
import type { MaybePromise } from '../../kernel/base/maybe-promise.js'
import type { HandOverMessage } from './group-message.js'
import type { KnownGroups, QueueGroup } from './known-groups.js'

/** What comes when they are full is not kept: a flood pays for so much and no more. */
const MAX_BYTES = 16 * 1_048_576
/** Memory of a message beside its payload. An estimate. */
const OVERHEAD_BYTES = 512
/** Memory of a queue group that has got it. An estimate. */
const GIVEN_BYTES = 64

interface Early extends HandOverMessage {
  /** Ids of the queue groups that were known; `undefined`: none was. */
  given: Set<string> | undefined
}

interface EarlyMessagesContext {
  /** Whether nodes that were silent while this one asked who is there may turn up yet. */
  readonly isNew: () => boolean
  /** They are gone after this time. */
  readonly ttlMs: number
  readonly deadlines: Pick<Deadlines, 'now' | 'set'>
  readonly known: Pick<KnownGroups, 'match'>
  readonly handOver: (group: QueueGroup, message: HandOverMessage) => MaybePromise<unknown>
  readonly report: (error: unknown, text: string) => void
}

/**
 * What this node has published since it learnt who is there, until nodes that were silent meanwhile have been heard or are
 * gone. Queue groups that it did not know get it then.
 */
export class EarlyMessages {
  readonly #context: EarlyMessagesContext
  #kept: Early[] = []
  byteCount = 0

  constructor(context: EarlyMessagesContext) {
    this.#context = context
  }

  add(message: HandOverMessage, known: readonly QueueGroup[]): void {
    const { isNew, ttlMs, deadlines } = this.#context
    const ownBytes = message.payload.length + OVERHEAD_BYTES + known.length * GIVEN_BYTES
    const byteCount = this.byteCount + ownBytes
    if (byteCount > MAX_BYTES || !isNew()) return
    if (this.#kept.length === 0) deadlines.set(deadlines.now() + ttlMs, () => this.clear())
    const { key, payload, isBinary, messageId } = message
    const given = known.length === 0 ? undefined : new Set(known.map(({ id }) => id))
    this.#kept.push({ key, payload: copyBytes(payload), isBinary, messageId, given })
    this.byteCount = byteCount
  }

  /** All queue groups of another node are known: those that were not get what they have missed. */
  giveTo(node: string): void {
    // Later: the sink of a broker must not call it.
    setImmediate(() => {
      for (const early of this.#kept) {
        for (const group of this.#context.known.match('listen', early.key)) {
          if (!group.remote.has(node) || early.given?.has(group.id) === true) continue
          early.given ??= new Set()
          early.given.add(group.id)
          this.#give(group, early).catch((error: unknown) =>
            this.#context.report(error, 'a message for a node that was silent could not be handed over'),
          )
        }
      }
    })
  }

  clear(): void {
    this.#kept = []
    this.byteCount = 0
  }

  async #give(group: QueueGroup, message: HandOverMessage): Promise<void> {
    await this.#context.handOver(group, message)
  }
}
