import type { PresenceMember } from '../../protocol/messages.js'

/** Receiver of changes at a key. */
export interface TestWatcher {
  tell(key: string, change: { enter?: PresenceMember[]; update?: PresenceMember[]; leave?: string[] }): void
}

interface Present {
  readonly member: PresenceMember
  /** The connection; absent while it is lost and the member lingers. */
  readonly holder: object | undefined
}

/** The test server's presence. It sends every change at once; members of lost connections stay until `lapse`. */
export class TestPresence {
  readonly #byKey = new Map<string, Map<string, Present>>()
  readonly #watchers = new Map<string, Set<TestWatcher>>()

  members(key: string): readonly PresenceMember[] {
    return [...(this.#byKey.get(key)?.values() ?? [])].map(({ member }) => member)
  }

  enter(key: string, holder: object | undefined, member: PresenceMember): void {
    const present = this.#byKey.get(key) ?? new Map<string, Present>()
    const before = present.get(member.id)?.member
    for (const [id, other] of present) if (holder && other.holder === holder && id !== member.id) this.leave(key, id)
    this.#byKey.set(key, present.set(member.id, { member, holder }))
    if (!before) this.#tell(key, { enter: [member] })
    else if (JSON.stringify(before) !== JSON.stringify(member)) this.#tell(key, { update: [member] })
  }

  leave(key: string, id: string): void {
    if (this.#byKey.get(key)?.delete(id)) this.#tell(key, { leave: [id] })
  }

  /** Removes a connection's member at a key. */
  leaveOf(key: string, holder: object): void {
    for (const [id, present] of this.#byKey.get(key) ?? []) if (present.holder === holder) this.leave(key, id)
  }

  watch(key: string, watcher: TestWatcher): void {
    this.#watchers.set(key, (this.#watchers.get(key) ?? new Set()).add(watcher))
  }

  unwatch(key: string, watcher: TestWatcher): void {
    this.#watchers.get(key)?.delete(watcher)
  }

  /** Removes a connection's member and watch at a key; returns whether there were any. */
  end(key: string, holder: TestWatcher): boolean {
    const isPresent = [...(this.#byKey.get(key)?.values() ?? [])].some((present) => present.holder === holder)
    this.leaveOf(key, holder)
    return this.#watchers.get(key)?.delete(holder) === true || isPresent
  }

  /** A connection has ended. */
  closed(holder: TestWatcher, isWanted: boolean): void {
    for (const watchers of this.#watchers.values()) watchers.delete(holder)
    for (const [key, present] of this.#byKey) {
      if (isWanted) this.leaveOf(key, holder)
      else for (const [id, one] of present) if (one.holder === holder) present.set(id, { ...one, holder: undefined })
    }
  }

  /** Ends the time to linger for all lost connections. */
  lapse(): void {
    for (const [key, present] of this.#byKey) for (const [id, { holder }] of present) if (!holder) this.leave(key, id)
  }

  #tell(key: string, change: Parameters<TestWatcher['tell']>[1]): void {
    for (const watcher of this.#watchers.get(key) ?? []) watcher.tell(key, change)
  }
}
