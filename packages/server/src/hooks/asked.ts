import type { Actor } from '../identity/actor.js'
import type { Claims } from '../identity/index.js'
import type { HookClient } from './hooks.js'

/**
 * The client, as functions of the application see it. Classes that extend it keep in private fields the values that the server
 * reads back. A static method gives them away, so that no function can reach them.
 */
export abstract class Asked implements HookClient {
  readonly #caller: Actor

  constructor(caller: Actor) {
    this.#caller = caller
  }

  get session(): string {
    return this.#caller.id
  }

  get user(): string | undefined {
    return this.#caller.userId
  }

  get claims(): Claims | undefined {
    return this.#caller.claims
  }

  get address(): string {
    return this.#caller.address
  }
}
