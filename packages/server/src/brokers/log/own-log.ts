import type { Position } from '../../ports/broker.js'
import { DedupeWindow } from '../../ports/dedupe-window.js'
import type { HistoryOptions } from '../../ports/history-rules.js'
import type { MessageContent } from '../../ports/messages.js'
import type { DuplicateFilterOptions } from '../dedupe/duplicate-filter.js'
import { newEpoch } from './epoch.js'
import { HistoryLog } from './history-log.js'

/** The log that one node keeps by itself, and the ids of the messages that were published or received there. */
export class OwnLog {
  readonly history: HistoryLog
  readonly #options: DuplicateFilterOptions
  #knownIds: DedupeWindow

  /** @param now Unix time in milliseconds. */
  constructor(options: HistoryOptions & DuplicateFilterOptions, now?: () => number) {
    this.#options = options
    this.history = new HistoryLog(options, now)
    this.#knownIds = this.#noIds()
  }

  /** Restarts empty, with another epoch. */
  restart(): void {
    this.#knownIds = this.#noIds()
    this.history.restart(newEpoch())
  }

  /** Whether a message with this id was recorded or refused within the window. */
  knows(messageId: string, nowMs: number): boolean {
    return this.#knownIds.has(messageId, nowMs)
  }

  positionOf(messageId: string): Position | undefined {
    return this.#knownIds.positionOf(messageId)
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
    if (messageId !== undefined) this.#knownIds.remember(messageId, position, nowMs)
    return position
  }

  /** Notes a message that is not valid for this node, and remembers its id. */
  refuse(message: MessageContent, messageId: string | undefined, nowMs: number): void {
    if (messageId !== undefined) this.#knownIds.remember(messageId, undefined, nowMs)
    if (this.#isLogged(message)) this.history.refuseNext(message.key)
  }

  #isLogged({ key, attributes }: MessageContent): boolean {
    return attributes?.isEphemeral !== true && this.history.logs(key)
  }

  #noIds(): DedupeWindow {
    return new DedupeWindow({ windowMs: this.#options.dedupeWindowMs, maxIds: this.#options.dedupeMaxIds })
  }
}
