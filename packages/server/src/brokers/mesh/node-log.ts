import type { MaybePromise } from '../../base/maybe-promise.js'
import type { OutboundMessage, Position, Reader, ReadRange, ReadResult } from '../../ports/broker.js'
import { DedupeWindow } from '../../ports/dedupe-window.js'
import { newEpoch } from '../log/epoch.js'
import { HistoryLog, hasHistory } from '../log/history-log.js'
import type { PeerMessage } from './link.js'
import type { MeshBrokerOptions } from './options.js'

/** The log of one node of a mesh, and the ids of the messages that were published or received there. */
export class NodeLog {
  readonly #options: MeshBrokerOptions
  readonly #log: HistoryLog
  #knownIds: DedupeWindow

  constructor(options: MeshBrokerOptions) {
    this.#options = options
    // Each node would have a state of its own.
    this.#log = new HistoryLog({ ...options, retain: undefined })
    this.#knownIds = this.#noIds()
  }

  get position(): Position {
    return this.#log.position
  }

  /** Restarts empty, with another epoch. */
  restart(): void {
    this.#knownIds = this.#noIds()
    this.#log.restart(newEpoch())
  }

  /** Whether all messages that the pattern matches are logged. */
  covers(pattern: string): boolean {
    return this.#log.covers(pattern)
  }

  /** Whether a message with this id was recorded or refused within the window. */
  knows(messageId: string, nowMs: number): boolean {
    return this.#knownIds.has(messageId, nowMs)
  }

  positionOf(messageId: string): Position | undefined {
    return this.#knownIds.positionOf(messageId)
  }

  /** Logs a new message, if its key is logged, and remembers its id. */
  record(message: OutboundMessage | PeerMessage, messageId: string | undefined, nowMs: number): Position | undefined {
    const position = this.#isLogged(message) ? this.#log.append(message) : undefined
    if (messageId !== undefined) this.#knownIds.remember(messageId, position, nowMs)
    return position
  }

  /** Notes a message that is not valid for this node, and remembers its id. */
  refuse(message: PeerMessage, messageId: string | undefined, nowMs: number): void {
    if (messageId !== undefined) this.#knownIds.remember(messageId, undefined, nowMs)
    if (this.#isLogged(message)) this.#log.refuseNext(message.key)
  }

  /** Messages may be missing here. */
  interrupt(): void {
    this.#log.interrupt()
  }

  /** As {@link Broker.read}. */
  read(range: ReadRange, patterns: readonly string[], reader?: Reader): MaybePromise<ReadResult> {
    const { epoch } = this.#log
    const isForeign = [range.since, range.before].some((from) => from !== undefined && from.epoch !== epoch)
    // The client may have received messages of this log on the other node: a replay would deliver them twice.
    if (isForeign && hasHistory(this.#options))
      return { messages: [], position: this.#log.position, isPartial: false, gap: 'epoch-changed' }
    return this.#log.read(range, patterns, reader)
  }

  #isLogged({ key, attributes }: OutboundMessage | PeerMessage): boolean {
    return attributes?.isEphemeral !== true && this.#log.logs(key)
  }

  #noIds(): DedupeWindow {
    return new DedupeWindow({ windowMs: this.#options.dedupeWindowMs, maxIds: this.#options.dedupeMaxIds })
  }
}
