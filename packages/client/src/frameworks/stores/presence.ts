import { type GivenClient, scopeOf } from '../../core/of-client.js'
import { type Member, type Presence, presence } from '../../parts/presence/index.js'
import type { WebMQError } from '../../protocol/errors.js'
import { acquire } from './shared.js'
import { constantStore, type Store, sharedStore } from './store.js'
import { whileClient } from './while-client.js'

/** Who is present at a key. */
export interface Present<D> {
  /** In the order of their entries, as far as this client has seen them. */
  readonly members: readonly Member<D>[]
  /** Whether the members are not known yet. */
  readonly isStale: boolean
  /** Why the server has refused or ended an entry or the watch. */
  readonly error: WebMQError | undefined
}

const EMPTY: Present<never> = { members: [], isStale: true, error: undefined }
const IDLE = { ...EMPTY, isStale: false }

/** The store of the members at `key`; of none if it is `null`. */
export function presenceStore(client: GivenClient, key: string | null, graceMs?: number): Store<Present<unknown>> {
  if (key === null) return constantStore(IDLE)
  const open = (changed: () => void) => {
    const members = new Map<string, Member>()
    let isStale = true
    let error: WebMQError | undefined
    const close = whileClient(client, (present) => {
      const room = presence(key, { client: present })
      const on: Presence['on'] = (event, handler) =>
        room.on(event, (value) => {
          handler(value)
          changed()
        })
      const put = (member: Member) => members.set(member.id, member)
      members.clear()
      isStale = true
      on('enter', put)
      on('update', put)
      on('leave', ({ id }) => members.delete(id))
      on('sync', () => {
        isStale = false
        error = undefined
      })
      on('error', (reason) => {
        error = reason
      })
      return () => void room.close()
    })
    return { close, read: () => ({ members: [...members.values()], isStale, error }) }
  }
  return sharedStore<Present<unknown>>(scopeOf(client), `presence ${key}`, EMPTY, open, graceMs)
}

/**
 * Enters for one component, or changes its data. Returns a function that leaves.
 * @param owner The component. If it enters again within `graceMs`, it never left.
 */
export function enter(owner: object, client: GivenClient, key: string, data: unknown, graceMs?: number): () => void {
  const open = () => {
    let said: { readonly data: unknown } | undefined
    let room!: Presence
    const close = whileClient(client, (present) => {
      room = presence(key, { client: present })
      if (said) void room.enter(said.data)
      return () => void room.close()
    })
    // A refusal goes to those who watch the key, and to the `error` event.
    const enter = (next: unknown) => {
      said = { data: next }
      void room.enter(next)
    }
    return { close, enter }
  }
  const [entry, release] = acquire(owner, `enter ${key}`, open, graceMs)
  entry.enter(data)
  return release
}
