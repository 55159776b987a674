import {
  type Awareness,
  applyAwarenessUpdate,
  encodeAwarenessUpdate,
  removeAwarenessStates,
} from 'y-protocols/awareness'
import type { WebMQClient } from '../../core/client.js'
import { WebMQError } from '../../protocol/errors.js'
import { type Member, type Presence, presence } from '../presence/index.js'
import { fromBase64, toBase64 } from './base64.js'

/** Changes of so much time are one message. */
const PUBLISH_MS = 40
/** A client that comes later gets a state that is at most so old. */
const PRESENCE_MS = 1_000

/** No more cursors are taken: they end 30 s after their last update. */
const MAX_STATES = 1_000

/** Data of a member: its awareness, encoded. */
interface Entry {
  readonly client: number
  readonly state: string
}

/** Collaborators of {@link Cursors}. */
export interface CursorsContext {
  readonly client: WebMQClient
  readonly awareness: Awareness
  readonly key: string
  /** Origin of the changes that it applies. */
  readonly origin: unknown
  /** Publishes an update of the awareness, unless there is no connection. */
  publish(update: Uint8Array): void
  report(error: unknown): void
}

/**
 * The awareness of all clients. Changes are messages, which is fast. Presence lists the clients, and gives
 * their states to those that come later.
 */
export class Cursors {
  readonly #context: CursorsContext
  readonly #presence: Presence<Entry>
  #isRefused = false
  #publishTimer: ReturnType<typeof setTimeout> | undefined
  #presenceTimer: ReturnType<typeof setTimeout> | undefined

  constructor(context: CursorsContext) {
    this.#context = context
    const { awareness, client, key, origin, report } = context
    this.#presence = presence<Entry>(key, { client })
    this.#presence.on('enter', (member) => this.#here(member))
    this.#presence.on('update', (member) => this.#here(member))
    this.#presence.on('leave', ({ data }) => {
      if (isEntry(data) && data.client !== awareness.clientID) removeAwarenessStates(awareness, [data.client], origin)
    })
    this.#presence.on('error', (error) => {
      // Its cursors would be refused as well, each move of the mouse with an error.
      this.#isRefused = error.code === 'E_FORBIDDEN'
      report(error)
    })
    awareness.on('update', this.#onUpdate)
    if (awareness.getLocalState() !== null) this.#enter()
  }

  /** Applies an update of another client. @throws if it is none, or there are too many. */
  take(update: Uint8Array): void {
    const { awareness, origin } = this.#context
    if (awareness.getStates().size >= MAX_STATES) {
      throw new WebMQError('E_PAYLOAD_INVALID', { detail: `more than ${MAX_STATES} cursors` })
    }
    applyAwarenessUpdate(awareness, update, origin)
  }

  stop(): void {
    const { awareness, origin } = this.#context
    clearTimeout(this.#publishTimer)
    clearTimeout(this.#presenceTimer)
    awareness.off('update', this.#onUpdate)
    void this.#presence.close()
    const others = [...awareness.getStates().keys()].filter((id) => id !== awareness.clientID)
    removeAwarenessStates(awareness, others, origin)
  }

  readonly #onUpdate = (changes: Record<'added' | 'updated' | 'removed', number[]>, origin: unknown): void => {
    const { awareness, publish } = this.#context
    const isOwn = Object.values(changes).some((ids) => ids.includes(awareness.clientID))
    if (origin === this.#context.origin || !isOwn) return
    this.#publishTimer ??= setTimeout(() => {
      this.#publishTimer = undefined
      if (!this.#isRefused) publish(encodeAwarenessUpdate(awareness, [awareness.clientID]))
    }, PUBLISH_MS)
    this.#presenceTimer ??= setTimeout(() => {
      this.#presenceTimer = undefined
      if (awareness.getLocalState() === null) void this.#presence.leave()
      else this.#enter()
    }, PRESENCE_MS)
  }

  #enter(): void {
    const { awareness } = this.#context
    const client = awareness.clientID
    const state = toBase64(encodeAwarenessUpdate(awareness, [client]))
    this.#presence.enter({ client, state }).then(
      () => {
        this.#isRefused = false
      },
      // The event tells it.
      () => undefined,
    )
  }

  #here({ data }: Member<Entry>): void {
    if (!isEntry(data) || data.client === this.#context.awareness.clientID) return
    try {
      this.take(fromBase64(data.state))
    } catch (error) {
      this.#context.report(error)
    }
  }
}

/** Other clients may say anything. */
function isEntry(data: unknown): data is Entry {
  const { client, state } = (data ?? {}) as Partial<Entry>
  return typeof client === 'number' && typeof state === 'string'
}
