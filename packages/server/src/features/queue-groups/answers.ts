import type { TaskMessageOf } from './task-message.js'

/**
 * What became of a task: a member has it; there is no member; members take no more at present; or it was sent in a term of
 * this node that is over, and is to be sent again.
 */
export type Answer = 'taken' | 'none' | 'full' | 'late'

export interface AnswersContext {
  readonly term: () => number
  readonly send: (message: TaskMessageOf<'taken'>, to: string) => void
}

const MAX_ANSWERS = 1_000

/** Answers to tasks of other nodes, those of one turn as one message for each node. */
export class Answers {
  readonly #context: AnswersContext
  readonly #byNode = new Map<string, { readonly number: number; readonly answer: Answer }[]>()

  constructor(context: AnswersContext) {
    this.#context = context
  }

  /** Later: the sink of a broker must not call it. */
  add(to: string, number: number, answer: Answer): void {
    if (this.#byNode.size === 0) setImmediate(() => this.send())
    const known = this.#byNode.get(to)
    if (known === undefined) this.#byNode.set(to, [{ number, answer }])
    else known.push({ number, answer })
  }

  send(): void {
    const { term, send } = this.#context
    const byNode = [...this.#byNode]
    this.#byNode.clear()
    for (const [to, all] of byNode) {
      for (let start = 0; start < all.length; start += MAX_ANSWERS) {
        const numbersOf = (...of: Answer[]) =>
          all.slice(start, start + MAX_ANSWERS).flatMap(({ number, answer }) => (of.includes(answer) ? number : []))
        // An older node reads `refused` alone, and knows nothing of the others.
        const [full, late] = [numbersOf('full'), numbersOf('late')]
        const more = { ...(full.length > 0 ? { full } : {}), ...(late.length > 0 ? { late, term: term() } : {}) }
        send({ kind: 'taken', taken: numbersOf('taken'), refused: numbersOf('none', 'full'), ...more }, to)
      }
    }
  }
}
