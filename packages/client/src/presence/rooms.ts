import type { ClientCore, ClientPart } from '../client-part.js'
import { errorOfServer } from '../connection/server-error.js'
import { type ServerMessage, WebMQError } from '../protocol/index.js'
import { randomName } from '../publishing/random-name.js'
import { Room } from './room.js'

/** The presence of one client, by key. */
export class Rooms implements ClientPart {
  readonly #byKey = new Map<string, Room>()
  /** One name per client: after a reconnect it is the same member. */
  readonly #name = randomName()
  #core: ClientCore | undefined

  /** Call it before anything else. */
  begin(core: ClientCore): void {
    this.#core = core
  }

  at(key: string): Room {
    const room = this.#byKey.get(key) ?? new Room(key, this.#name, this.#core as ClientCore)
    this.#byKey.set(key, room)
    return room
  }

  up(): void {
    for (const room of this.#byKey.values()) room.up()
  }

  down(): void {
    for (const room of this.#byKey.values()) room.down()
  }

  receive(message: ServerMessage): void {
    if (message.verb === 'presence') {
      try {
        this.#byKey.get(message.key)?.receive(message)
      } catch (cause) {
        this.#core?.report({
          error: new WebMQError('E_MESSAGE_INVALID', { detail: message.verb, cause }),
          key: message.key,
        })
      }
    } else if (message.verb === 'error') this.#byKey.get(message.key ?? '')?.revoked(errorOfServer(message))
  }

  close(error: WebMQError): void {
    for (const room of this.#byKey.values()) room.close(error)
  }
}
