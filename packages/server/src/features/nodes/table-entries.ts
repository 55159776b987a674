export interface TableChange {
  readonly id: string
}

/** The entries of a shared table. A node decides about its own entries alone. */
export interface TableEntries<Change extends TableChange> {
  /** Ids of this node's entries; a live view. */
  ids(): Iterable<string>
  /** JSON of this node's entry; `undefined` when there is none. */
  entryText(id: string): string | undefined
  /** JSON that says that this node's entry is gone. @param note As given to `SharedTable.changed`. */
  removalText(id: string, note: number): string
  /** Reads an entry or a removal of another node; `undefined` when it is malformed. */
  decode(item: unknown, node: string): Change | undefined
  apply(change: Change): void
  /** Ids of the entries that this node holds of another. */
  idsOf(node: string): Iterable<string>
  remove(node: string, id: string): void
  /** The entries of a node are over. @param hasLeft It has said so, and did not crash. */
  removeNode(node: string, hasLeft: boolean): void
  /** `SharedTable.members` may be others. */
  membersChanged?(): void
  /** All entries of the node have come. */
  copied?(node: string): void
  /** A node that did not answer has been heard. */
  heard?(node: string): void
  /** Messages may have been lost: other nodes are asked for their entries again. */
  messagesLost?(): void
}
