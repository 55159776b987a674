import { type GivenClient, scopeOf } from '../../core/of-client.js'
import { type Member, presence } from '../../parts/presence/index.js'
import type { WebMQError } from '../../protocol/errors.js'
import { acquire } from './shared.js'
import { constantStore, type Store, sharedStore } from './store.js'

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
    const room = presence(key, { client })
    const put = (member: Member) => {
      members.set(member.id, member)
      changed()
    }
    room.on('enter', put)
    room.on('update', put)
    room.on('leave', ({ id }) => {
      members.delete(id)
      changed()
    })
    room.on('sync', () => {
      isStale = false
      error = undefined
      changed()
    })
    room.on('error', (reason) => {
      error = reason
      changed()
    })
    return { close: () => void room.close(), read: () => ({ members: [...members.values()], isStale, error }) }
  }
  return sharedStore<Present<unknown>>(scopeOf(client), `presence ${key}`, EMPTY, open, graceMs)
}

/**
 * Enters for one component, or changes its data. Returns a function that leaves.
 * @param owner The component. If it enters again within `graceMs`, it never left.
 */
export function enter(owner: object, client: GivenClient, key: string, data: unknown, graceMs?: number): () => void {
  const open = () => {
    const room = presence(key, { client })
    return { room, close: () => void room.close() }
  }
  const [{ room }, release] = acquire(owner, `enter ${key}`, open, graceMs)
  // A refusal goes to those who watch the key, and to the `error` event.
  void room.enter(data)
  return release
}
