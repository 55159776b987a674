import * as Y from 'yjs'
import { Knowledge } from './knowledge.js'

/** Questions beyond it are not answered now: their clients ask again. */
const MAX_ASKS = 16

/** The states of clients that may lack something that this one has. */
export class Asks {
  #asks: Knowledge[] = []

  /**
   * Takes the state of another client. Cheap: the document is looked at once for all of them, by {@link answer}.
   * @throws if it is no state.
   */
  take(bytes: Uint8Array): void {
    if (this.#asks.length < MAX_ASKS) this.#asks.push(new Knowledge(Y.decodeSnapshot(bytes)))
  }

  /** Everybody has got an update. */
  add(update: Uint8Array): void {
    for (const ask of this.#asks) ask.add(update)
  }

  /**
   * Forgets the questions.
   * @returns An update for those who still lack something, if there are any, and whether somebody has more than this
   * document.
   */
  answer(doc: Y.Doc): { readonly update: Uint8Array | undefined; readonly hasMore: boolean } {
    const asks = this.#asks.splice(0)
    const own = Y.snapshot(doc)
    const updates = asks.flatMap((ask) => (ask.covers(own) ? [] : [ask.missing(doc)]))
    return {
      update: updates.length > 0 ? Y.mergeUpdates(updates) : undefined,
      hasMore: asks.some((ask) => !ask.isWithin(own)),
    }
  }

  clear(): void {
    this.#asks = []
  }
}
