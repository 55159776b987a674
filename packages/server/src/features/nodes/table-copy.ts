import type { TableChange, TableEntries } from './table-entries.js'

/** The node whose entries are copied. */
interface CopiedNode {
  /** Asks it for all its entries. */
  want(round: number): void
  /** The copy of its entries has this version now. */
  reached(version: number): void
}

interface Transfer {
  readonly round: number
  nextIndex: number
  /** Ids of known entries that have not been sent again yet. */
  readonly unseen: Set<string>
  hasProgress: boolean
}

/**
 * This node's copy of the entries of another node. Changes carry consecutive versions. A skipped version means that
 * changes were missed, and this node asks for a full copy.
 *
 * A full copy comes in parts, with changes in between. A change is newer than the parts before it and older than the
 * parts after it, because brokers keep the order of one publisher. So the sender needs no snapshot.
 */
export class TableCopy<Change extends TableChange> {
  readonly #node: string
  readonly #entries: Pick<TableEntries<Change>, 'apply' | 'idsOf' | 'remove'>
  readonly #peer: CopiedNode
  /** Version of this node's table that the other node has confirmed. */
  knownVersion = 0
  /** The other node has told its version since this table was opened. */
  hasReported = false
  takesPart = true
  #version = 0
  #transfer: Transfer | undefined
  #roundCount = 0

  constructor(node: string, entries: Pick<TableEntries<Change>, 'apply' | 'idsOf' | 'remove'>, peer: CopiedNode) {
    this.#node = node
    this.#entries = entries
    this.#peer = peer
  }

  get isComplete(): boolean {
    return this.#transfer === undefined
  }

  compare(version: number): void {
    if (this.#transfer === undefined && version > this.#version) this.#requestAll()
  }

  changes(version: number, changes: readonly Change[]): void {
    // Until the first part arrives, changes are skipped: the parts will contain them.
    if (version <= this.#version || this.#transfer?.nextIndex === 0) return
    if (version > this.#version + 1) {
      this.#requestAll()
      return
    }
    this.#version = version
    for (const change of changes) this.#apply(change)
    this.#peer.reached(version)
  }

  part(part: { round: number; index: number; version: number; isLast: boolean }, changes: readonly Change[]): void {
    const { round, index, version, isLast } = part
    const transfer = this.#transfer
    if (transfer === undefined || round !== transfer.round || index < transfer.nextIndex) return
    if (index === 0) this.#version = version
    else if (index > transfer.nextIndex || version !== this.#version) {
      this.#requestAll()
      return
    }
    transfer.nextIndex = index + 1
    transfer.hasProgress = true
    for (const change of changes) this.#apply(change)
    if (!isLast) return
    for (const id of transfer.unseen) this.#entries.remove(this.#node, id)
    this.#transfer = undefined
    this.#peer.reached(version)
  }

  /** Called at intervals. Asks again when nothing has arrived since the last call. */
  retry(): void {
    if (this.#transfer === undefined) return
    if (this.#transfer.hasProgress) this.#transfer.hasProgress = false
    else this.#requestAll()
  }

  /** The answer may be lost: asks again. */
  restart(): void {
    if (this.#transfer !== undefined) this.#requestAll()
  }

  #apply(change: Change): void {
    this.#transfer?.unseen.delete(change.id)
    this.#entries.apply(change)
  }

  #requestAll(): void {
    const round = ++this.#roundCount
    this.#transfer = { round, nextIndex: 0, unseen: new Set(this.#entries.idsOf(this.#node)), hasProgress: true }
    this.#peer.want(round)
  }
}
