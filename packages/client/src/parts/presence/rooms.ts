import type { ClientCore, ClientPart } from '../../core/client-part.js'
import { randomName } from '../../core/publishing/random-name.js'
import { decodePresence } from '../../protocol/decode-server.js'
import { WebMQError } from '../../protocol/errors.js'
import type { RawMessage } from '../../protocol/raw-message.js'
import { Room } from './room.js'

/** The presence of one client, by key. */
export class Rooms implements ClientPart {
  readonly #byKey = new Map<string, Room>()
  /** One name per client: after a reconnect it is the same member. */
  readonly #name = randomName()
  readonly #core: ClientCore

  constructor(core: ClientCore) {
    this.#core = core
  }

  at(key: string): Room {
    const room = this.#byKey.get(key) ?? new Room(key, this.#name, this.#core)
    // Otherwise a page that goes from room to room has all of them for ever.
    for (const [other, { isIdle }] of this.#byKey) if (isIdle) this.#byKey.delete(other)
    this.#byKey.set(key, room)
    return room
  }

  up(): void {
    for (const room of this.#byKey.values()) room.up()
  }

  down(): void {
    for (const room of this.#byKey.values()) room.down()
  }

  receive(raw: RawMessage): void {
    if (raw.verb !== 'presence') return
    try {
      const message = decodePresence(raw)
      this.#byKey.get(message.key)?.receive(message)
    } catch (cause) {
      const error =
        cause instanceof WebMQError ? cause : new WebMQError('E_MESSAGE_INVALID', { detail: raw.verb, cause })
      this.#core.report({ error, key: raw.fields[0] })
    }
  }

  revoked(key: string): void {
    this.#byKey.get(key)?.revoked()
  }

  /** Reports an error of an app's handler. */
  report(error: unknown, key: string): void {
    this.#core.report({ error, key })
  }

  close(error: WebMQError): void {
    for (const room of this.#byKey.values()) room.close(error)
  }
}
