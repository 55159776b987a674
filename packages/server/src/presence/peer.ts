import { addressOf, type Entry, type Members } from './members.js'
import type { Departure, NodeMessage } from './node-message.js'

type MessageOf<K extends NodeMessage['kind']> = Extract<NodeMessage, { kind: K }>

/** What a {@link Peer} works with. */
export interface PeerContext {
  readonly members: Pick<Members, 'entriesOf' | 'remove'>
  readonly take: (entry: Entry) => void
  readonly depart: (node: string, departure: Departure) => void
  /** Asks the node for all its members. */
  readonly want: (node: string, round: number) => void
  /** The copy is complete. */
  readonly onComplete: () => void
}

/** A full copy in progress. */
interface Transfer {
  readonly round: number
  /** Index of the next part. */
  nextIndex: number
  /** Addresses of known entries that have not been sent again yet. */
  readonly unseen: Set<string>
  hasProgress: boolean
}

/**
 * This node's copy of the members of another node. Changes carry consecutive versions. A skipped version means that
 * changes were missed, and this node asks for a full copy.
 *
 * A full copy comes in parts, with changes in between. A change is newer than the parts before it and older than the
 * parts after it, because brokers keep the order of one publisher. So the sender needs no snapshot.
 */
export class Peer {
  readonly node: string
  readonly #context: PeerContext
  #version = 0
  #transfer: Transfer | undefined
  #roundCount = 0

  constructor(node: string, context: PeerContext) {
    this.node = node
    this.#context = context
  }

  /** Whether the copy is complete, as far as this node knows. */
  get isComplete(): boolean {
    return this.#transfer === undefined
  }

  changes({ version, entries, departures }: MessageOf<'changes'>): void {
    // Until the first part arrives, changes are skipped: the parts will contain them.
    if (version <= this.#version || this.#transfer?.nextIndex === 0) return
    if (version > this.#version + 1) {
      this.#requestAll()
      return
    }
    this.#version = version
    for (const entry of entries) this.#take(entry)
    for (const departure of departures) {
      this.#transfer?.unseen.delete(addressOf(departure.key, departure.id))
      this.#context.depart(this.node, departure)
    }
  }

  lease(version: number): void {
    if (this.#transfer === undefined && version > this.#version) this.#requestAll()
  }

  part({ round, index, version, isLast, entries }: MessageOf<'part'>): void {
    const transfer = this.#transfer
    if (transfer === undefined || round !== transfer.round || index < transfer.nextIndex) return
    if (index === 0) this.#version = version
    else if (index > transfer.nextIndex || version !== this.#version) {
      this.#requestAll()
      return
    }
    transfer.nextIndex = index + 1
    transfer.hasProgress = true
    for (const entry of entries) this.#take(entry)
    if (!isLast) return
    for (const address of transfer.unseen) {
      const [key = '', id = ''] = address.split(' ')
      this.#context.members.remove(this.node, key, id)
    }
    this.#transfer = undefined
    this.#context.onComplete()
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

  #take(entry: Entry): void {
    this.#transfer?.unseen.delete(addressOf(entry.key, entry.member.id))
    this.#context.take(entry)
  }

  #requestAll(): void {
    const round = ++this.#roundCount
    const unseen = new Set(this.#context.members.entriesOf(this.node).keys())
    this.#transfer = { round, nextIndex: 0, unseen, hasProgress: true }
    this.#context.want(this.node, round)
  }
}
