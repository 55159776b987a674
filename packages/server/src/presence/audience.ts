import type { GroupId, Transport } from '../ports/transport.js'
import { BATCH_MS } from './announcer.js'
import type { Member } from './member.js'

/** What an {@link Audience} works with. */
export interface AudienceContext {
  readonly transport: Pick<Transport, 'multicast'>
  readonly find: (key: string, id: string) => Member | undefined
}

/** Groups of routes count up from 0; those of watched keys from here, so that the two never meet. */
const FIRST_GROUP = 2 ** 31

interface Watch {
  readonly group: GroupId
  watcherCount: number
  /** Members that changed since the watchers were told, as they were then. */
  readonly untold: Map<string, Member | undefined>
}

/** Who watches which keys on this node, and is told what changes: of many changes at once the difference, in one message. */
export class Audience {
  readonly #context: AudienceContext
  readonly #watches = new Map<string, Watch>()
  readonly #changed = new Map<string, Watch>()
  readonly #freeGroups: GroupId[] = []
  #groupCount = 0
  #timer: NodeJS.Timeout | undefined

  constructor(context: AudienceContext) {
    this.#context = context
  }

  /** Keys that somebody watches. */
  get keyCount(): number {
    return this.#watches.size
  }

  /** Counts one watcher more; whoever joins the group is told all changes from then on. */
  watch(key: string): GroupId {
    const known = this.#watches.get(key)
    if (known !== undefined) {
      // What the others are still to be told is in the list that this one gets.
      this.tell(key)
      known.watcherCount++
      return known.group
    }
    const group = this.#freeGroups.pop() ?? ((FIRST_GROUP + this.#groupCount++) as GroupId)
    this.#watches.set(key, { group, watcherCount: 1, untold: new Map() })
    return group
  }

  /** The group of a key that is watched. */
  groupOf(key: string): GroupId | undefined {
    return this.#watches.get(key)?.group
  }

  /** Tells what changed of a key up to now. */
  tell(key: string): void {
    const watch = this.#changed.get(key)
    if (watch !== undefined) this.#tell(key, watch)
  }

  /** Counts one watcher less. */
  unwatch(key: string): void {
    const watch = this.#watches.get(key)
    if (watch === undefined || --watch.watcherCount > 0) return
    this.#watches.delete(key)
    this.#changed.delete(key)
    this.#freeGroups.push(watch.group)
  }

  /** A member changed. Cost for a key that nobody watches: one look-up. */
  changed(key: string, id: string, before: Member | undefined): void {
    const watch = this.#watches.get(key)
    if (watch === undefined) return
    if (!watch.untold.has(id)) watch.untold.set(id, before)
    this.#changed.set(key, watch)
    this.#timer ??= setTimeout(() => this.#tellAll(), BATCH_MS).unref()
  }

  /** Nobody is told any more. */
  stop(): void {
    clearTimeout(this.#timer)
    this.#changed.clear()
  }

  #tellAll(): void {
    this.#timer = undefined
    for (const [key, watch] of this.#changed) this.#tell(key, watch)
  }

  #tell(key: string, { group, untold }: Watch): void {
    this.#changed.delete(key)
    const text = this.#differenceOf(key, untold)
    untold.clear()
    if (text !== undefined) this.#context.transport.multicast([group], `presence ${key}\n${text}`, false)
  }

  /** `undefined` when all is as it was. */
  #differenceOf(key: string, untold: ReadonlyMap<string, Member | undefined>): string | undefined {
    const entered: string[] = []
    const updated: string[] = []
    const left: string[] = []
    for (const [id, before] of untold) {
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
