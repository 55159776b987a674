import type { Position } from '../../../kernel/ports/broker.js'
import { type DedupeOptions, DedupeWindow } from '../../../kernel/ports/dedupe-window.js'
import type { HistoryOptions } from '../../../kernel/ports/history-rules.js'
import type { MessageContent } from '../../../kernel/ports/messages.js'
import { newEpoch } from './epoch.js'
import { HistoryLog } from './history-log.js'

/** The log that one node keeps by itself, and the ids of the messages that were published or received there. */
export class OwnLog {
  readonly history: HistoryLog
  readonly #options: DedupeOptions
  /** Of messages that were recorded or refused within the window. */
  ids: DedupeWindow

  /** @param now Unix time in milliseconds. */
  constructor(options: HistoryOptions & DedupeOptions, now?: () => number) {
    this.#options = options
    this.history = new HistoryLog(options, now)
    this.ids = new DedupeWindow(options)
  }

  restart(): void {
    this.ids = new DedupeWindow(this.#options)
    this.history.restart(newEpoch())
  }

  /**
   * Logs a new message, if its key is logged, and remembers its id.
   * @throws {WebMQError} `E_STATE_LIMIT`
   */
  record(message: MessageContent, messageId: string | undefined, nowMs: number): Position | undefined {
    const { key, payload, attributes } = message
    const isLogged = this.#isLogged(message)
    // The message is logged at once: the reserved room is not held.
    if (isLogged) this.history.retained?.reserve(key, payload.length, attributes)?.()
    const position = isLogged ? this.history.append(message) : undefined
    if (messageId !== undefined) this.ids.remember(messageId, position, nowMs)
    return position
  }

  /** Notes a message that is not valid for this node, and remembers its id. */
  refuse(message: MessageContent, messageId: string | undefined, nowMs: number): void {
    if (messageId !== undefined) this.ids.remember(messageId, undefined, nowMs)
    if (this.#isLogged(message)) this.history.refuseNext(message.key)
  }

  #isLogged({ key, attributes }: MessageContent): boolean {
    return attributes?.isEphemeral !== true && this.history.logs(key)
  }
}
