import { copyBytes } from '../../kernel/base/copy-bytes.js'
import type { Deadlines } from '../../kernel/base/deadlines.js'
import type { MaybePromise } from '../../kernel/base/maybe-promise.js'
import type { HandOverMessage } from './group-message.js'
import type { KnownGroups, QueueGroup } from './known-groups.js'

/** Beyond it, the oldest are forgotten. */
const MAX_BYTES = 16 * 1_048_576
/** Memory of a message beside its payload. An estimate. */
const OVERHEAD_BYTES = 512

interface Early {
  readonly message: HandOverMessage
  /** Ids of the queue groups that were known. */
  readonly given: Set<string>
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
  /** In the order of their coming. */
  readonly #kept = new Set<Early>()
  byteCount = 0

  constructor(context: EarlyMessagesContext) {
    this.#context = context
  }

  add(message: HandOverMessage, known: readonly QueueGroup[]): void {
    const { isNew, ttlMs, deadlines } = this.#context
    if (!isNew()) return
    if (this.#kept.size === 0) deadlines.set(deadlines.now() + ttlMs, () => this.clear())
    const { key, payload, isBinary, messageId } = message
    const own = { key, payload: copyBytes(payload), isBinary, messageId }
    this.#kept.add({ message: own, given: new Set(known.map(({ id }) => id)) })
    this.byteCount += payload.length + OVERHEAD_BYTES
    for (const oldest of this.#kept) {
      if (this.byteCount <= MAX_BYTES) break
      this.#kept.delete(oldest)
      this.byteCount -= oldest.message.payload.length + OVERHEAD_BYTES
    }
  }

  /** All queue groups of another node are known: those that were not get what they have missed. */
  giveTo(node: string): void {
    // Later: the sink of a broker must not call it.
    setImmediate(() => {
      for (const { message, given } of this.#kept) {
        for (const group of this.#context.known.match('listen', message.key)) {
          if (!group.remote.has(node) || given.has(group.id)) continue
          given.add(group.id)
          this.#give(group, message).catch((error: unknown) =>
            this.#context.report(error, 'a message for a node that was silent could not be handed over'),
          )
        }
      }
    })
  }

  clear(): void {
    this.#kept.clear()
    this.byteCount = 0
  }

  async #give(group: QueueGroup, message: HandOverMessage): Promise<void> {
    await this.#context.handOver(group, message)
  }
}
