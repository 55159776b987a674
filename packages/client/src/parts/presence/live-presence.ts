import { encodeJson } from '../../core/checks.js'
import { Emitter } from '../../core/events/emitter.js'
import type { PresenceEvent } from './difference.js'
import type { Room, Watcher } from './room.js'
import type { Rooms } from './rooms.js'
import type { Member, Presence, PresenceEvents, User } from './types.js'
import { usersOf } from './users.js'

/** One handle of a {@link Room}: its handlers, and its wish to be present. */
export class LivePresence implements Presence, Watcher {
  readonly key: string
  readonly #rooms: Rooms
  #emitter: Emitter<PresenceEvents>
  isTold = false

  constructor(rooms: Rooms, key: string) {
    this.#rooms = rooms
    this.key = key
    this.#emitter = this.#newEmitter()
  }

  get #room(): Room {
    return this.#rooms.at(this.key)
  }

  get id(): string | undefined {
    return this.#room.id
  }

  enter(data?: unknown): Promise<void> {
    let saying: string | undefined
    try {
      if (data !== undefined) saying = encodeJson(data)
    } catch (error) {
      return Promise.reject(error)
    }
    const entered = this.#room.enter(this, saying)
    // The promise is optional: the event `error` reports the same.
    entered.catch(() => undefined)
    return entered
  }

  update(data: unknown): Promise<void> {
    return this.enter(data)
  }

  leave(): Promise<void> {
    return this.#room.leave(this)
  }

  get(): Promise<readonly Member[]> {
    return this.#room.get()
  }

  async users(): Promise<readonly User[]> {
    return usersOf(await this.get())
  }

  on<E extends keyof PresenceEvents>(event: E, handler: (event: PresenceEvents[E]) => unknown): () => void {
    this.#room.watch(this)
    return this.#emitter.on(event, handler)
  }

  close(): Promise<void> {
    const left = this.leave()
    this.#room.unwatch(this)
    this.isTold = false
    this.#emitter = this.#newEmitter()
    return left
  }

  [Symbol.dispose](): void {
    void this.close()
  }

  tell([event, value]: PresenceEvent): void {
    this.#emitter.emit(event, value as never)
  }

  #newEmitter(): Emitter<PresenceEvents> {
    return new Emitter((error) => this.#rooms.report(error, this.key))
  }
}
