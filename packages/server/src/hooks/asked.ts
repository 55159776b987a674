import type { Actor } from '../identity/actor.js'
import type { Claims } from '../identity/index.js'
import type { HookClient } from './hooks.js'

/**
 * What functions of the application get of a client. What the server reads back is in private fields of the classes that
 * extend it, which a static method gives away, so that no function can reach it.
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
