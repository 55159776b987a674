/** One life of a node, as the one whose messages another node has in its log. */
export interface Origin {
  /** Names the life in what this node says: 0 is this node itself. */
  readonly index: number
  /** Id of the node in that life. */
  readonly life: string
  /** Sequence up to which its messages were taken in, or are lost. */
  known: number
  /** Up to this one of its messages, some are not in this node's log: they have gone from it, or never came. */
  lost: number
  /** The last of its messages in this node's log. */
  logged: number
}

/** Lives that are remembered. A node that starts ten times a day, among twenty that do, gets here after three months. */
const MAX_ORIGINS = 16_384

/** All lives of nodes that this node has heard of, itself first. */
export class Origins {
  readonly #byLife = new Map<string, Origin>()
  readonly #byIndex = new Map<number, Origin>()
  readonly own: Origin
  #nextIndex = 0
  /** Told of every life that is heard of for the first time. */
  onNew: (origin: Origin) => void = () => undefined

  constructor(ownLife: string) {
    this.own = this.of(ownLife)
  }

  all(): IterableIterator<Origin> {
    return this.#byLife.values()
  }

  find(life: string): Origin | undefined {
    return this.#byLife.get(life)
  }

  /** The origin that {@link Origin.index} names; `undefined` for one that is forgotten. */
  at(index: number): Origin | undefined {
    return this.#byIndex.get(index)
  }

  /** The origin of a life. The one that was heard of first is forgotten for one too many. */
  of(life: string): Origin {
    const known = this.#byLife.get(life)
    if (known !== undefined) return known
    const origin = { index: this.#nextIndex++, life, known: 0, lost: 0, logged: 0 }
    this.#byLife.set(life, origin)
    this.#byIndex.set(origin.index, origin)
    if (this.#byLife.size > MAX_ORIGINS) this.#forgetOldest()
    this.onNew(origin)
    return origin
  }

  #forgetOldest(): void {
    for (const origin of this.#byLife.values()) {
      if (origin === this.own) continue
      this.#byLife.delete(origin.life)
      this.#byIndex.delete(origin.index)
      return
    }
  }
}
