import type { Session } from './session.js'

/** The presence of the tabs at one key. */
interface Place {
  /** The name of the member that stands for all tabs [P-14.3]. */
  member: string | undefined
  readonly present: Set<Session>
  readonly watching: Set<Session>
}

/**
 * Presence of several tabs on one connection. A connection is present at a key once [P-14.4], so all tabs are one member:
 * the data of the last `enter` counts, and the member leaves with the last tab.
 */
export class SharedPresence {
  readonly #places = new Map<string, Place>()

  /** A request of a tab. Returns what to ask the server; `undefined` if the tab's wish has been granted by that. */
  ask(session: Session, fields: readonly string[]): readonly string[] | undefined {
    const [, , key = '', ...options] = fields
    const place = this.#places.get(key) ?? { member: undefined, present: new Set(), watching: new Set() }
    this.#places.set(key, place)
    switch (opOf(options)) {
      case 'enter':
        place.present.add(session)
        place.member ??= options.find((option) => option.startsWith('member='))
        return fields.map((field, index) =>
          index > 2 && field.startsWith('member=') ? (place.member ?? field) : field,
        )
      case 'watch':
        place.watching.add(session)
        return fields
      case 'leave':
        place.present.delete(session)
        return this.#left(key, place.present) ? fields : undefined
      case 'unwatch':
        place.watching.delete(session)
        return this.#left(key, place.watching) ? fields : undefined
      default:
        this.#tidy(key)
        return fields
    }
  }

  /** The server has refused a request. */
  refused(session: Session, [, , key = '', ...options]: readonly string[]): void {
    const place = this.#places.get(key)
    const op = opOf(options)
    if (op === 'enter') place?.present.delete(session)
    if (op === 'watch') place?.watching.delete(session)
    this.#tidy(key)
  }

  /** The tabs that want the changes at a key. */
  watchers(key: string): Iterable<Session> {
    return this.#places.get(key)?.watching ?? []
  }

  /** The server has ended presence at a key. Returns the tabs that were there. */
  end(key: string): Iterable<Session> {
    const place = this.#places.get(key)
    this.#places.delete(key)
    return new Set([...(place?.present ?? []), ...(place?.watching ?? [])])
  }

  /** A tab has gone. Returns the requests that end what only it needed. */
  forget(session: Session): readonly (readonly string[])[] {
    const requests: string[][] = []
    for (const [key, { present, watching }] of this.#places) {
      if (present.delete(session) && present.size === 0) requests.push(['presence', '', key, 'op=leave'])
      if (watching.delete(session) && watching.size === 0) requests.push(['presence', '', key, 'op=unwatch'])
      this.#tidy(key)
    }
    return requests
  }

  #left(key: string, sessions: ReadonlySet<Session>): boolean {
    const isEmpty = sessions.size === 0
    this.#tidy(key)
    return isEmpty
  }

  #tidy(key: string): void {
    const place = this.#places.get(key)
    if (place?.present.size === 0) place.member = undefined
    if (place?.present.size === 0 && place.watching.size === 0) this.#places.delete(key)
  }
}

function opOf(options: readonly string[]): string | undefined {
  return options.find((option) => option.startsWith('op='))?.slice('op='.length)
}
