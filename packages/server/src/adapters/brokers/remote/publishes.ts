import type { Accepted, OutboundMessage } from '../../../kernel/ports/broker.js'
import { assertMessageId } from '../../../kernel/ports/message-id.js'
import { accepted } from '../../../kernel/ports/messages.js'
import type { PublishIds } from '../dedupe/publish-ids.js'
import type { HistoryLog } from '../log/history-log.js'
import { bundleEnd, encodeBundle } from './bundle.js'
import { besideTheLog } from './ephemeral.js'
import type { LogReplica } from './log-replica.js'
import type { PendingPublishes } from './pending-publishes.js'

export interface PublishesOptions {
  readonly ids: PublishIds
  readonly pending: PendingPublishes
  /** As in {@link LinkDriver}. */
  readonly takesBundles: boolean
  /** Both absent without history. */
  readonly history: HistoryLog | undefined
  readonly replica: LogReplica | undefined
}

/** The publishes of a node on their way to the link: each id once, logged messages with room for their key. */
export class Publishes {
  readonly #options: PublishesOptions

  constructor(options: PublishesOptions) {
    this.#options = options
  }

  publish(message: OutboundMessage): Promise<Accepted> | Accepted {
    const { messageId } = message
    if (messageId === undefined) return this.#send(message)
    assertMessageId(messageId)
    return this.#options.ids.once(messageId, () => this.#inLog(messageId) ?? this.#send(message), message.author)
  }

  async publishBatch(messages: readonly OutboundMessage[]): Promise<readonly Accepted[]> {
    const results = new Array<Accepted>(messages.length)
    const waiting: Promise<unknown>[] = []
    try {
      for (let next = 0; next < messages.length; ) {
        const from = next
        const end = this.#isBundled(messages[from]) ? bundleEnd(messages, from) : from
        const to = Math.max(end, from + 1)
        const answer = this.#publishRun(messages, from, to)
        waiting.push(Promise.resolve(answer).then((accepted) => results.fill(accepted, from, to)))
        next = to
      }
    } catch (error) {
      // The publishes before it are pending and may fail too: all are awaited.
      waiting.push(Promise.reject(error))
    }
    await Promise.all(waiting)
    return results
  }

  /** One message, or several as one bundle. */
  #publishRun(messages: readonly OutboundMessage[], from: number, to: number): Promise<Accepted> | Accepted {
    const first = messages[from] as OutboundMessage
    if (to - from === 1) return this.publish(first)
    return this.#options.pending.sendBundle(first.key, encodeBundle(messages, from, to), to - from)
  }

  /** Pending messages that clients have meanwhile published through other nodes are not sent. */
  confirmLogged(): void {
    for (const { sequence, messageId } of this.#options.pending.messagesAfter(0)) {
      const answer = messageId === undefined ? undefined : this.#inLog(messageId)
      if (answer !== undefined) this.#options.pending.confirm(sequence, false, answer)
    }
  }

  /**
   * The answer to a message whose id is in this node's copy of the log. The broker may have forgotten the id, and does
   * not have to be asked.
   */
  #inLog(messageId: string): Accepted | undefined {
    const position = this.#options.replica?.positionOf(messageId)
    return position === undefined ? undefined : accepted(position, true)
  }

  #send(message: OutboundMessage): Promise<Accepted> {
    const { history, pending } = this.#options
    const { key, payload, attributes } = message
    const isLogged = history?.logs(key) === true
    if (isLogged && attributes?.isEphemeral === true) return pending.send(besideTheLog(message), false)
    const release = isLogged ? history?.retained?.reserve(key, payload.length, attributes) : undefined
    if (release === undefined) return pending.send(message, isLogged)
    try {
      return pending.send(message, true).finally(release)
    } catch (error) {
      release()
      throw error
    }
  }

  /** A bundle has one position, and each message of the log needs its own. */
  #isBundled(message: OutboundMessage | undefined): boolean {
    return this.#options.takesBundles && message !== undefined && this.#options.history?.logs(message.key) !== true
  }
}
