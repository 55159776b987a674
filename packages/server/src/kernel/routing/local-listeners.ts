import type { GapReason } from 'webmq-client/protocol'
import { copyBytes } from '../base/copy-bytes.js'
import { logBug, logPaced } from '../base/log-bug.js'
import { LogPace } from '../base/log-pace.js'
import type { Logger } from '../base/logger.js'
import { parseJson, textOf } from '../base/parse-json.js'
import type { MessageAttributes } from '../ports/attributes.js'
import type { InboundMessage } from '../ports/broker.js'
import { formatPosition } from '../ports/position.js'
import type { GroupId } from '../ports/transport.js'

/** What a local handler gets beside the payload. */
export interface LocalMessage {
  readonly key: string
  /** Position in the broker's log; absent when the message is not logged. */
  readonly position?: string
  /** User of the publisher; absent for anonymous clients and for servers. This and the next two: only for keys of `meta`. */
  readonly userId?: string
  /** When the node of the publisher took it, Unix time in milliseconds. */
  readonly timeMs?: number
  /** Names the message: the same for all who get it. */
  readonly id?: string
  /** The trace that the message belongs to, as `traceparent` of W3C Trace Context. The handler runs in a span of it. */
  readonly traceparent?: string
  /** Its place in a stream, see {@link WebMQServer.stream}: `<id>:<number>:<kind>`. */
  readonly stream?: string
}

/**
 * Handles one message in the process of the server.
 * @param payload The parsed JSON of a text message, or a copy of the bytes of a binary one.
 */
export type LocalHandler = (payload: unknown, message: LocalMessage) => unknown

/** Messages of a local listener may be missing. */
export interface LocalGap {
  readonly pattern: string
  readonly reason: GapReason
}

/** Options of {@link WebMQServer.listen}. */
export interface LocalListenOptions {
  /** Called, in order with the messages, when messages may be missing before the next one. Errors are logged. */
  readonly onGap?: (gap: LocalGap) => unknown
  /**
   * Name of a queue group, 1 to 64 characters of `[A-Za-z0-9_-]`: of each message, one member of the group with this
   * pattern gets it, over all connections and nodes. There are no gaps: without a member, the group misses the message.
   */
  readonly group?: string | undefined
}

/** A subscription in the server's process. */
export interface LocalSubscription extends Disposable {
  readonly pattern: string
  /** Resolves once the handler gets messages. Rejects with `E_BROKER_UNAVAILABLE`, or `E_NOT_RUNNING` when the server stops first. */
  readonly ready: Promise<void>
  /** Ends the subscription; the handler gets no message after the call. */
  close(): void
}

/** Takes a message as it is. It has a payload of its own. */
export type LocalReceiver = (message: InboundMessage) => void

/** A handler that waits for messages of its group. */
export interface LocalListener {
  readonly pattern: string
  readonly group: GroupId
  readonly handler?: LocalHandler
  /** Of the server itself. No application is asked, so nothing is parsed. */
  readonly receive?: LocalReceiver
  /** Called when messages may be missing before the next. */
  readonly onGap?: ((gap: LocalGap) => unknown) | undefined
}

/** Adds a listener. Resolves, once it is live, to a function that removes it. */
export type Listen = (pattern: string, listener: Omit<LocalListener, 'pattern' | 'group'>) => Promise<() => void>

/** Runs handlers in spans of the traces that their messages belong to. */
interface HandlerTracer {
  handle(pattern: string, key: string, traceparent: string, handle: () => unknown): unknown
}

/** Bytes that may wait for the handlers of one turn; beyond it messages are dropped, counted, logged and told as a gap. */
const MAX_WAITING_BYTES = 64 * 1_048_576
/** Memory of a message beside its payload. */
const MESSAGE_OVERHEAD_BYTES = 256
const REFUSED_LOG_INTERVAL_MS = 10_000

/**
 * Handlers inside the server's process. They run in order, after the turn that delivered their message: application code never
 * runs in the middle of a publish, and a handler that publishes to its own pattern cannot starve the event loop.
 */
export class LocalListeners {
  readonly #log: Logger
  readonly #tracer: HandlerTracer | undefined
  readonly #byGroup = new Map<GroupId, Set<LocalListener>>()
  /** Listeners that missed messages in this turn; they are told at its end. */
  readonly #missed = new Set<LocalListener>()
  #waiting: (() => void)[] = []
  #waitingBytes = 0
  #isScheduled = false
  readonly #refusedPace = new LogPace(REFUSED_LOG_INTERVAL_MS)
  /** Messages that were dropped because the handlers did not keep up. */
  droppedCount = 0

  /** @param tracer Absent when nobody traces. */
  constructor(log: Logger, tracer?: HandlerTracer) {
    this.#log = log
    this.#tracer = tracer
  }

  get isEmpty(): boolean {
    return this.#byGroup.size === 0
  }

  /** Listeners of a group. */
  countOf(group: GroupId): number {
    return this.#byGroup.get(group)?.size ?? 0
  }

  add(listener: LocalListener): void {
    const listeners = this.#byGroup.get(listener.group) ?? new Set()
    listeners.add(listener)
    this.#byGroup.set(listener.group, listeners)
  }

  remove(listener: LocalListener): void {
    const listeners = this.#byGroup.get(listener.group)
    if (listeners?.delete(listener) && listeners.size === 0) this.#byGroup.delete(listener.group)
  }

  /** A message is being delivered to these groups. Without local listeners it costs nothing. */
  deliver(groups: readonly GroupId[], message: InboundMessage): void {
    if (this.isEmpty) return
    let text: string | undefined
    for (const group of groups) {
      for (const listener of this.#byGroup.get(group) ?? []) {
        if (listener.receive !== undefined) this.#enqueueAsItIs(listener, listener.receive, message)
        if (listener.handler === undefined) continue
        // A handler may change what it gets: bytes are copied and a text is parsed for each.
        if (!message.isBinary) text ??= textOf(message.payload)
        this.#enqueueMessage(listener, listener.handler, message, text ?? copyBytes(message.payload))
      }
    }
  }

  /** Messages for this group may be missing before the next. */
  gap(group: GroupId, reason: GapReason): void {
    for (const listener of this.#byGroup.get(group) ?? [])
      this.#enqueue(listener, 0, () => this.#callGap(listener, reason))
  }

  #enqueueAsItIs(listener: LocalListener, receive: LocalReceiver, message: InboundMessage): void {
    const own = { ...message, payload: copyBytes(message.payload) }
    this.#enqueueCounted(listener, message, () => this.#call(() => receive(own), { key: message.key }))
  }

  #enqueueMessage(
    listener: LocalListener,
    handler: LocalHandler,
    { key, payload, position, attributes }: InboundMessage,
    content: Uint8Array | string,
  ): void {
    const traceparent = attributes?.traceparent
    const call = () => {
      const message = {
        key,
        ...(position === undefined ? undefined : { position: formatPosition(position) }),
        ...(attributes === undefined ? undefined : shownAttributes(attributes)),
      }
      let value: unknown = content
      try {
        if (typeof content === 'string') value = parsed(content)
      } catch (err) {
        this.#refused(listener, key, err)
        return
      }
      const handle = () => handler(value, message)
      const tracer = this.#tracer
      const isTraced = tracer !== undefined && traceparent !== undefined
      this.#call(isTraced ? () => tracer.handle(listener.pattern, key, traceparent, handle) : handle, { key })
    }
    this.#enqueueCounted(listener, { key, payload }, call)
  }

  #enqueueCounted(listener: LocalListener, message: Pick<InboundMessage, 'key' | 'payload'>, call: () => void): void {
    const { key, payload } = message
    if (this.#enqueue(listener, payload.length, call)) return
    this.droppedCount++
    logPaced(this.#log, 'warn', { key }, 'local listeners do not keep up: messages dropped')
  }

  /** Its publisher has sent what a handler does not understand: no fault of the application. */
  #refused(listener: LocalListener, key: string, err: unknown): void {
    const others = this.#refusedPace.take()
    if (others !== undefined) this.#log.debug({ err, key, others }, 'a message for a local listener is not JSON')
    this.#callGap(listener, 'refused')
  }

  /** Returns whether there was room. After the first miss nothing of this turn is taken: the gap is told at its end. */
  #enqueue(listener: LocalListener, payloadBytes: number, call: () => void): boolean {
    const byteCount = payloadBytes + MESSAGE_OVERHEAD_BYTES
    if (!this.#isScheduled) setImmediate(() => this.#drain())
    this.#isScheduled = true
    if (this.#missed.size > 0 || this.#waitingBytes + byteCount > MAX_WAITING_BYTES) {
      this.#missed.add(listener)
      return false
    }
    this.#waitingBytes += byteCount
    this.#waiting.push(() => {
      if (this.#has(listener)) call()
    })
    return true
  }

  #has(listener: LocalListener): boolean {
    return this.#byGroup.get(listener.group)?.has(listener) === true
  }

  #drain(): void {
    const waiting = this.#waiting
    const missed = [...this.#missed]
    this.#isScheduled = false
    this.#waiting = []
    this.#waitingBytes = 0
    this.#missed.clear()
    for (const call of waiting) call()
    for (const listener of missed) if (this.#has(listener)) this.#callGap(listener, 'slow-consumer')
  }

  #callGap({ pattern, onGap }: LocalListener, reason: GapReason): void {
    if (onGap !== undefined) this.#call(() => onGap({ pattern, reason }), { pattern })
  }

  /** A handler that fails is a bug of the application, which clients may find: it is logged, and other handlers go on. */
  #call(handle: () => unknown, fields: object): void {
    const report = (err: unknown) => logBug(this.#log, { err, ...fields }, 'a local listener failed')
    try {
      const result = handle()
      if (result instanceof Promise) result.catch(report)
    } catch (error) {
      report(error)
    }
  }
}

/** Some messages of streams are empty. */
function parsed(text: string): unknown {
  return text === '' ? undefined : parseJson(text)
}

/** What a handler sees of the attributes. */
export function shownAttributes({ userId, timeMs, id, traceparent, stream }: MessageAttributes): Partial<LocalMessage> {
  return {
    ...(userId === undefined ? undefined : { userId }),
    ...(timeMs === undefined ? undefined : { timeMs }),
    ...(id === undefined ? undefined : { id }),
    ...(traceparent === undefined ? undefined : { traceparent }),
    ...(stream === undefined ? undefined : { stream }),
  }
}
