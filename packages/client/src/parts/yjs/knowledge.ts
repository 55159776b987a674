import * as Y from 'yjs'

type DeleteSet = Y.Snapshot['ds']

/** The changes of a document that the log or another client has: which ones, not their content. */
export class Knowledge {
  readonly #vector: Map<number, number>
  #deleted: DeleteSet[]

  constructor({ sv, ds }: Y.Snapshot = Y.emptySnapshot) {
    this.#vector = new Map(sv)
    this.#deleted = [ds]
  }

  /**
   * They have an update, too. It does not count if something before it is missing: at worst, they get it twice.
   * @throws if it is not an update.
   */
  add(update: Uint8Array): void {
    const { structs, ds } = Y.decodeUpdate(update)
    for (const struct of structs) {
      const { client, clock } = struct.id
      const known = this.#vector.get(client) ?? 0
      const end = clock + struct.length
      if (!(struct instanceof Y.Skip) && clock <= known && end > known) this.#vector.set(client, end)
    }
    if (ds.clients.size > 0) this.#deleted.push(ds)
  }

  /** Whether they have everything that a document has. */
  covers({ sv, ds }: Y.Snapshot): boolean {
    for (const [client, clock] of sv) if ((this.#vector.get(client) ?? 0) < clock) return false
    const known = this.#merged()
    return Y.equalDeleteSets(Y.mergeDeleteSets([known, ds]), known)
  }

  /** Whether a document has everything that they have. */
  isWithin({ sv, ds }: Y.Snapshot): boolean {
    for (const [client, clock] of this.#vector) if ((sv.get(client) ?? 0) < clock) return false
    return Y.equalDeleteSets(Y.mergeDeleteSets([ds, this.#merged()]), ds)
  }

  /** What they lack of the document. */
  missing(doc: Y.Doc): Uint8Array {
    return Y.encodeStateAsUpdate(doc, Y.encodeStateVector(this.#vector))
  }

  #merged(): DeleteSet {
    const merged = Y.mergeDeleteSets(this.#deleted)
    this.#deleted = [merged]
    return merged
  }
}
