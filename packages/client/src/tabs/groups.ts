import type { Session } from './session.js'

/**
 * The members of queue groups among the tabs. A connection is a member once [P-16.2], so the tabs of a group are one member
 * together, and take turns.
 */
export class SharedGroups {
  /** By pattern, group and kind; the next one is the first. */
  readonly #members = new Map<string, Session[]>()

  /** A tab joins a group. */
  join(session: Session, pattern: string, options: readonly string[]): void {
    const name = nameOf(pattern, options)
    this.#members.set(name, [...this.#others(name, session), session])
  }

  /** A tab does not belong to a group any more. */
  leave(session: Session, pattern: string, options: readonly string[]): 'last' | 'others' | 'none' {
    const name = nameOf(pattern, options)
    if (!this.#members.get(name)?.includes(session)) return 'none'
    const others = this.#others(name, session)
    if (others.length > 0) this.#members.set(name, others)
    else this.#members.delete(name)
    return others.length > 0 ? 'others' : 'last'
  }

  /** The tab whose turn it is. */
  next(pattern: string, options: readonly string[]): Session | undefined {
    const name = nameOf(pattern, options)
    const [first] = this.#members.get(name) ?? []
    if (first) this.#members.set(name, [...this.#others(name, first), first])
    return first
  }

  /** The server has ended the membership. Returns the members. */
  end(pattern: string, options: readonly string[]): readonly Session[] {
    const name = nameOf(pattern, options)
    const members = this.#members.get(name) ?? []
    this.#members.delete(name)
    return members
  }

  /** A tab has gone. Returns the requests that end what only it belonged to. */
  forget(session: Session): readonly (readonly string[])[] {
    return [...this.#members.keys()].flatMap((name) => {
      const [pattern = '', ...options] = name.split(' ')
      return this.leave(session, pattern, options) === 'last' ? [['unlisten', '', pattern, ...options]] : []
    })
  }

  #others(name: string, session: Session): Session[] {
    return (this.#members.get(name) ?? []).filter((other) => other !== session)
  }
}

/** Group, pattern and kind together name a queue group [P-16.1]. None of them contains a space. */
function nameOf(pattern: string, options: readonly string[]): string {
  const group = options.find((option) => option.startsWith('group='))
  return `${pattern} ${group}${options.includes('respond') ? ' respond' : ''}`
}

/** Whether a listen or an unlisten is about a queue group. */
export function isOfGroup(options: readonly string[]): boolean {
  return options.some((option) => option.startsWith('group='))
}
