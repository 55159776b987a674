import type { GroupId, Transport } from '../ports/transport.js'
import type { Member } from './member.js'
import { BATCH_MS } from './sync.js'

/** What {@link Watchers} works with. */
export interface WatchersContext {
  readonly transport: Pick<Transport, 'multicast'>
  readonly find: (key: string, id: string) => Member | undefined
}

/** Groups of patterns count up from 0, groups of watched keys from here. The two ranges never overlap. */
const FIRST_GROUP = 2 ** 31

interface Watch {
  readonly group: GroupId
  watcherCount: number
  /** Members that changed since the last notification, in their state before the change. */
  readonly pending: Map<string, Member | undefined>
}

/** Tells the watchers of a key on this node what changed. Several changes within 20 ms become one message. */
export class Watchers {
  readonly #context: WatchersContext
  readonly #watches = new Map<string, Watch>()
  readonly #changed = new Map<string, Watch>()
  readonly #freeGroups: GroupId[] = []
  #groupCount = 0
  #timer: NodeJS.Timeout | undefined

  constructor(context: WatchersContext) {
    this.#context = context
  }

  /** Number of keys with a watcher. */
  get keyCount(): number {
    return this.#watches.size
  }

  /** Adds a watcher; members of the returned group get all later changes. */
  watch(key: string): GroupId {
    const known = this.#watches.get(key)
    if (known !== undefined) {
      // The new watcher gets a list that contains the pending changes, so they go out first.
      this.flush(key)
      known.watcherCount++
      return known.group
    }
    const group = this.#freeGroups.pop() ?? ((FIRST_GROUP + this.#groupCount++) as GroupId)
    this.#watches.set(key, { group, watcherCount: 1, pending: new Map() })
    return group
  }

  /** The group of a watched key. */
  groupOf(key: string): GroupId | undefined {
    return this.#watches.get(key)?.group
  }

  /** Sends the pending changes of a key now. */
  flush(key: string): void {
    const watch = this.#changed.get(key)
    if (watch !== undefined) this.#send(key, watch)
  }

  /** Removes a watcher. */
  unwatch(key: string): void {
    const watch = this.#watches.get(key)
    if (watch === undefined || --watch.watcherCount > 0) return
    this.#watches.delete(key)
    this.#changed.delete(key)
    this.#freeGroups.push(watch.group)
  }

  /** A member changed. Cost for a key without watchers: one lookup. */
  changed(key: string, id: string, before: Member | undefined): void {
    const watch = this.#watches.get(key)
    if (watch === undefined) return
    if (!watch.pending.has(id)) watch.pending.set(id, before)
    this.#changed.set(key, watch)
    this.#timer ??= setTimeout(() => this.#sendAll(), BATCH_MS).unref()
  }

  /** Sends nothing more. */
  stop(): void {
    clearTimeout(this.#timer)
    this.#changed.clear()
  }

  #sendAll(): void {
    this.#timer = undefined
    for (const [key, watch] of this.#changed) this.#send(key, watch)
  }

  #send(key: string, { group, pending }: Watch): void {
    this.#changed.delete(key)
    const text = this.#differenceOf(key, pending)
    pending.clear()
    if (text !== undefined) this.#context.transport.multicast([group], `presence ${key}\n${text}`, false)
  }

  /** `undefined` when nothing has changed in the end. */
  #differenceOf(key: string, pending: ReadonlyMap<string, Member | undefined>): string | undefined {
    const entered: string[] = []
    const updated: string[] = []
    const left: string[] = []
    for (const [id, before] of pending) {
      const after = this.#context.find(key, id)
      if (after === undefined) {
        if (before !== undefined) left.push(JSON.stringify(id))
      } else if (before === undefined) entered.push(after.json)
      else if (before.json !== after.json) updated.push(after.json)
    }
    const parts = [
      ...(entered.length > 0 ? [`"enter":[${entered.join()}]`] : []),
      ...(updated.length > 0 ? [`"update":[${updated.join()}]`] : []),
      ...(left.length > 0 ? [`"leave":[${left.join()}]`] : []),
    ]
    return parts.length > 0 ? `{${parts.join()}}` : undefined
  }
}
