import type { GroupId, Transport } from '../../kernel/ports/transport.js'
import type { Member } from './member.js'
/** Changes within this time go out together, so that a crowd that arrives at once costs few messages. */
export const BATCH_MS = 20

export interface WatchersContext {
  readonly transport: Pick<Transport, 'multicast'>
  readonly find: (key: string, id: string) => Member | undefined
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number
}

/** Groups of patterns count up from 0, groups of watched keys from here. The two ranges never overlap. */
const FIRST_GROUP = 2 ** 31
/** Units, about a microsecond of one core each, of differences that go out in one turn of the event loop. */
const TURN_UNITS = 1_000
/** Units per millisecond that differences may take. What is busier waits longer, and so tells of more changes at once. */
const UNITS_PER_MS = 50
/** No difference waits longer than this because of others. */
const MAX_WAIT_MS = 1_000
/** Units per watcher of a difference, beside its bytes. */
const FRAME_UNITS = 1
/** Bytes that reach a watcher per unit. */
const BYTES_PER_UNIT = 1_000

interface Watch {
  readonly group: GroupId
  watcherCount: number
  /** Members that changed since the last notification, in their state before the change. */
  readonly pending: Map<string, Member | undefined>
  /** The next difference goes out in this tick or later. */
  dueTick: number
  /** Where the key waits with its pending changes. */
  queue: Map<string, Watch> | undefined
}

/**
 * Tells the watchers of a key on this node what changed. Several changes within 20 ms become one message. A key whose
 * differences are dear waits longer for its next one, up to a second: its changes in between become one difference.
 */
export class Watchers {
  readonly #context: WatchersContext
  readonly #watches = new Map<string, Watch>()
  /** Keys with changes, by the tick in which they are told. */
  readonly #later = new Map<number, Map<string, Watch>>()
  /** Keys whose changes are told as soon as there is time. */
  readonly #due = new Map<string, Watch>()
  readonly #freeGroups: GroupId[] = []
  #waitingCount = 0
  #groupCount = 0
  #timer: NodeJS.Timeout | undefined
  #immediate: NodeJS.Immediate | undefined

  constructor(context: WatchersContext) {
    this.#context = context
  }

  get keyCount(): number {
    return this.#watches.size
  }

  /** Units, about a microsecond each, of telling the watchers of a key of `byteCount` changed bytes. */
  unitsOf(key: string, byteCount: number): number {
    return ((this.#watches.get(key)?.watcherCount ?? 0) * byteCount) / BYTES_PER_UNIT
  }

  /** Adds a watcher; members of the returned group get all later changes. Flush the key first. */
  watch(key: string): GroupId {
    const known = this.#watches.get(key)
    if (known !== undefined) {
      known.watcherCount++
      return known.group
    }
    const group = this.#freeGroups.pop() ?? ((FIRST_GROUP + this.#groupCount++) as GroupId)
    this.#watches.set(key, { group, watcherCount: 1, pending: new Map(), dueTick: 0, queue: undefined })
    return group
  }

  groupOf(key: string): GroupId | undefined {
    return this.#watches.get(key)?.group
  }

  /** Sends the pending changes of a key now. Returns the units of it. */
  flush(key: string): number {
    const watch = this.#watches.get(key)
    return watch?.queue === undefined ? 0 : this.#send(key, watch)
  }

  unwatch(key: string): void {
    const watch = this.#watches.get(key)
    if (watch === undefined || --watch.watcherCount > 0) return
    this.#watches.delete(key)
    this.#dequeue(key, watch)
    this.#freeGroups.push(watch.group)
  }

  /** A member changed. Cost for a key without watchers: one lookup. */
  changed(key: string, id: string, before: Member | undefined): void {
    const watch = this.#watches.get(key)
    if (watch === undefined) return
    if (!watch.pending.has(id)) watch.pending.set(id, before)
    if (watch.queue !== undefined) return
    const tick = Math.max(watch.dueTick, this.#tick() + 1)
    let queue = this.#later.get(tick)
    if (queue === undefined) {
      queue = new Map()
      this.#later.set(tick, queue)
    }
    queue.set(key, watch)
    watch.queue = queue
    this.#waitingCount++
    this.#arm()
  }

  stop(): void {
    clearTimeout(this.#timer)
    clearImmediate(this.#immediate)
    this.#later.clear()
    this.#due.clear()
  }

  #tick(): number {
    return Math.floor(this.#context.now() / BATCH_MS)
  }

  #arm(): void {
    this.#timer ??= setTimeout(() => this.#tickEnds(), BATCH_MS).unref()
  }

  #tickEnds(): void {
    this.#timer = undefined
    // A timer may fire up to a millisecond early.
    const tick = Math.floor((this.#context.now() + 1) / BATCH_MS)
    for (const [at, queue] of this.#later) {
      if (at > tick) continue
      this.#later.delete(at)
      for (const [key, watch] of queue) {
        this.#due.set(key, watch)
        watch.queue = this.#due
      }
    }
    if (this.#later.size > 0) this.#arm()
    if (this.#immediate === undefined) this.#sendDue()
  }

  /** Sends as much as one turn may take, and the rest in later turns: messages of others come in between. */
  #sendDue(): void {
    this.#immediate = undefined
    let units = 0
    for (const [key, watch] of this.#due) {
      if (units >= TURN_UNITS) {
        this.#immediate = setImmediate(() => this.#sendDue())
        return
      }
      units += this.#send(key, watch)
    }
  }

  #send(key: string, watch: Watch): number {
    const { group, pending, watcherCount } = watch
    const busyCount = this.#waitingCount
    this.#dequeue(key, watch)
    const text = this.differenceOf(key, pending)
    const units = pending.size
    pending.clear()
    if (text === undefined) return units
    this.#context.transport.multicast([group], text, false)
    const sendingUnits = watcherCount * (FRAME_UNITS + text.length / BYTES_PER_UNIT)
    // All busy keys share the time, so that dear keys do not hold up the others.
    const waitMs = Math.min(MAX_WAIT_MS, (sendingUnits * busyCount) / UNITS_PER_MS)
    watch.dueTick = this.#tick() + Math.ceil(waitMs / BATCH_MS)
    return units + sendingUnits
  }

  #dequeue(key: string, watch: Watch): void {
    if (watch.queue === undefined) return
    watch.queue.delete(key)
    watch.queue = undefined
    this.#waitingCount--
  }

  /** The message of what has become of members since `pending`; `undefined` when nothing has changed in the end. */
  differenceOf(key: string, pending: ReadonlyMap<string, Member | undefined>): string | undefined {
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
    return parts.length > 0 ? `presence ${key}\n{${parts.join()}}` : undefined
  }
}
