import type { ActorOptions } from '../../../packages/check/src/actors/actor.js'
import type { Received } from '../../../packages/check/src/judging/record.js'
import { type Adapter, CommandError } from '../../../packages/conformance/src/client/adapter.js'

export { CommandError }

/** What the actors of a play are given to drive their clients with. */
export interface Drive {
  readonly adapter: Pick<Adapter, 'call'>
  /** Begins the names of clients: those of several plays are in one process. */
  readonly prefix: string
  /** The adapter has failed, or has answered what it must not. */
  readonly failed: (owner: string, error: unknown) => void
}

export interface DrivenOptions extends ActorOptions {
  readonly drive: Drive
}

/** One client in the process of the adapter. */
export class DrivenClient {
  readonly name: string
  readonly #drive: Drive
  readonly #owner: string
  #isStopped = false

  constructor({ drive, name }: DrivenOptions, which = '') {
    this.#drive = drive
    this.#owner = name
    this.name = `${drive.prefix}${name}${which}`
  }

  /** Once stopped, errors tell nothing. */
  get isStopped(): boolean {
    return this.#isStopped
  }

  /** Sends a command. An answer is waited for as long as it takes: the settling of the run has the deadline. */
  async call(name: string, command: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>> {
    return await this.#drive.adapter.call({ do: name, client: this.name, ...command }, Number.POSITIVE_INFINITY)
  }

  /** Runs something in the background. */
  run(what: () => Promise<void>): void {
    what().catch((error) => {
      if (!this.#isStopped) this.#drive.failed(this.#owner, error)
    })
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.call('close', {}).catch((error) => this.#drive.failed(this.#owner, error))
  }
}

/** A message as an adapter tells it. */
export function receivedOf(key: unknown, payload: unknown, position: unknown): Received {
  const { id, pad } = Object(payload) as { readonly id?: unknown; readonly pad?: unknown }
  const isOurs = typeof id === 'string' && typeof pad === 'string' && Object.keys(Object(payload)).length === 2
  return {
    key: String(key),
    position: typeof position === 'string' ? position : '-',
    id: isOurs ? id : '',
    payloadBytes: Buffer.byteLength(JSON.stringify(payload ?? null)),
  }
}
