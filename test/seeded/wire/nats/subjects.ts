/** Who gets the messages of a subject. */
export interface Subscriber {
  /** With `*`, and `>` at the end. */
  readonly pattern: string
}

function isLiteral(pattern: string): boolean {
  return !pattern.split('.').some((token) => token === '*' || token === '>')
}

/** Whether a subject is one that a pattern is for. A subject with `*` is taken by its letters, as the server does. */
export function isMatch(pattern: readonly string[], subject: readonly string[]): boolean {
  for (let at = 0; at < pattern.length; at++) {
    const token = pattern[at]
    if (token === '>' && at === pattern.length - 1) return subject.length > at
    if (at >= subject.length || (token !== '*' && token !== subject[at])) return false
  }
  return subject.length === pattern.length
}

/** Whether some subject is one that both patterns are for. */
export function isOverlap(one: string, other: string): boolean {
  const [tokens, others] = [one.split('.'), other.split('.')]
  for (let at = 0; at < tokens.length && at < others.length; at++) {
    const [token, otherToken] = [tokens[at], others[at]]
    if (token === '>' || otherToken === '>') return true
    if (token !== otherToken && token !== '*' && otherToken !== '*') return false
  }
  return tokens.length === others.length
}

/** Subscribers by subject. Each subject brings them in the order in which they came, those of the exact subject first. */
export class SubjectIndex<S extends Subscriber> {
  readonly #exact = new Map<string, Set<S>>()
  readonly #wild = new Map<S, readonly string[]>()

  add(subscriber: S): void {
    const { pattern } = subscriber
    if (!isLiteral(pattern)) this.#wild.set(subscriber, pattern.split('.'))
    else {
      const same = this.#exact.get(pattern)
      if (same === undefined) this.#exact.set(pattern, new Set([subscriber]))
      else same.add(subscriber)
    }
  }

  delete(subscriber: S): void {
    this.#wild.delete(subscriber)
    const same = this.#exact.get(subscriber.pattern)
    if (same?.delete(subscriber) === true && same.size === 0) this.#exact.delete(subscriber.pattern)
  }

  match(subject: string): readonly S[] {
    const found = [...(this.#exact.get(subject) ?? [])]
    if (this.#wild.size === 0) return found
    const tokens = subject.split('.')
    for (const [subscriber, pattern] of this.#wild) if (isMatch(pattern, tokens)) found.push(subscriber)
    return found
  }
}
