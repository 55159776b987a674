import * as Y from 'yjs'
import { Knowledge } from './knowledge.js'

/** Questions beyond it are not answered now: those who ask do so again. */
const MAX_ASKS = 16

/** The state vectors of clients that may lack something that this one has. */
export class Asks {
  #asks: Knowledge[] = []

  /**
   * Takes the state of another client.
   * @returns Whether this document has something for it, and whether it has something for this document.
   * @throws if it is no state.
   */
  take(bytes: Uint8Array, doc: Y.Doc): { readonly lacks: boolean; readonly has: boolean } {
    const knowledge = new Knowledge(Y.decodeSnapshot(bytes))
    const lacks = !knowledge.covers(doc)
    if (lacks && this.#asks.length < MAX_ASKS) this.#asks.push(knowledge)
    return { lacks, has: !knowledge.isWithin(doc) }
  }

  /** Everybody has got an update. */
  add(update: Uint8Array): void {
    for (const ask of this.#asks) ask.add(update)
  }

  /** Returns an update for all who still lack something, and forgets them; `undefined` if nobody does. */
  answer(doc: Y.Doc): Uint8Array | undefined {
    const updates = this.#asks.splice(0).flatMap((ask) => (ask.covers(doc) ? [] : [ask.missing(doc)]))
    return updates.length > 0 ? Y.mergeUpdates(updates) : undefined
  }

  clear(): void {
    this.#asks = []
  }
}
