import { WebMQError } from 'webmq-client/protocol'
import type { InboundMessage } from './broker.js'
import { copyBytes } from './copy-bytes.js'
import type { Logger } from './logger.js'
import { formatPosition } from './position.js'
import type { GroupId } from './transport.js'

/** What a local handler is told beside the payload. */
export interface LocalMessage {
  readonly key: string
  /** Place in the broker's log; absent when the broker keeps none. */
  readonly position?: string
}

/**
 * Handles one message in the process of the server.
 * @param payload What the JSON of a text message says, or a copy of the bytes of a binary one.
 */
export type LocalHandler = (payload: unknown, message: LocalMessage) => unknown

/** A handler that waits for messages of its group. */
export interface LocalListener {
  readonly group: GroupId
  readonly handler: LocalHandler
}

/** Bounds what waits for the handlers of one turn; over it, messages are dropped, counted and logged. */
const MAX_WAITING_BYTES = 64 * 1_048_576
/** What a message costs beside its payload. */
const MESSAGE_OVERHEAD_BYTES = 256

/**
 * Handlers inside the server's own process. They run after the turn that delivered their message, in order: code of the
 * application never runs in the middle of a publish, and a handler that publishes what it listens to starves no one.
 */
export class LocalListeners {
  readonly #log: Logger
  readonly #byGroup = new Map<GroupId, Set<LocalListener>>()
  #waiting: (() => void)[] = []
  #waitingBytes = 0
  #droppedCount = 0

  constructor(log: Logger) {
    this.#log = log
  }

  /** Messages that were dropped because the handlers did not keep up. */
  get droppedCount(): number {
    return this.#droppedCount
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
    if (this.#byGroup.size === 0) return
    let copy: Uint8Array | undefined
    for (const group of groups) {
      for (const listener of this.#byGroup.get(group) ?? []) {
        copy ??= copyBytes(message.payload)
        this.#enqueue(listener, message, copy)
      }
    }
  }

  #enqueue(listener: LocalListener, { key, isBinary, position }: InboundMessage, payload: Uint8Array): void {
    const byteCount = payload.length + MESSAGE_OVERHEAD_BYTES
    if (this.#waitingBytes + byteCount > MAX_WAITING_BYTES) {
      if (this.#droppedCount++ % 10_000 === 0)
        this.#log.warn({ key }, 'local listeners do not keep up: messages dropped')
      return
    }
    this.#waitingBytes += byteCount
    if (this.#waiting.length === 0) setImmediate(() => this.#drain())
    this.#waiting.push(() => {
      if (this.#byGroup.get(listener.group)?.has(listener)) {
        this.#call(
          listener,
          payload,
          isBinary,
          position === undefined ? { key } : { key, position: formatPosition(position) },
        )
      }
    })
  }

  #drain(): void {
    const waiting = this.#waiting
    this.#waiting = []
    this.#waitingBytes = 0
    for (const call of waiting) call()
  }

  /** A handler that fails is a bug of the application: it is logged, and the others go on. */
  #call({ handler }: LocalListener, payload: Uint8Array, isBinary: boolean, message: LocalMessage): void {
    const report = (err: unknown) => this.#log.error({ err, key: message.key }, 'a local listener failed')
    try {
      const result = handler(isBinary ? copyBytes(payload) : parseJson(payload), message)
      if (result instanceof Promise) result.catch(report)
    } catch (error) {
      report(error)
    }
  }
}

function parseJson(payload: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(payload))
  } catch (cause) {
    throw new WebMQError('E_PAYLOAD_INVALID', { detail: 'a text message is not JSON', cause })
  }
}
