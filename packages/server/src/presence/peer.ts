import type { Departure, NodeMessage } from './node-message.js'
import { addressOf, type Entry, type Roster } from './roster.js'

type MessageOf<K extends NodeMessage['kind']> = Extract<NodeMessage, { kind: K }>

/** What a {@link Peer} works with. */
export interface PeerContext {
  readonly roster: Pick<Roster, 'entriesOf' | 'remove'>
  readonly take: (entry: Entry) => void
  readonly depart: (node: string, departure: Departure) => void
  /** Asks the node for everything that it holds. */
  readonly want: (node: string, round: number) => void
  /** All that the node holds is here now. */
  readonly onComplete: () => void
}

/** A copy that is being made. */
interface Sync {
  readonly round: number
  /** The part that comes next. */
  nextIndex: number
  /** What was here of the node before and has not come again. */
  readonly unseen: Set<string>
  hasProgress: boolean
}

/**
 * This node's copy of what another node holds. Changes have consecutive versions; one that does not follow the last means that some
 * were missed, and everything is asked for again.
 *
 * A copy comes in parts, with changes in between that are newer than the parts before and older than those after them: brokers keep
 * the order of what one node publishes. So the sender need not stand still, nor keep a second copy.
 */
export class Peer {
  readonly node: string
  readonly #context: PeerContext
  #version = 0
  #sync: Sync | undefined
  #roundCount = 0

  constructor(node: string, context: PeerContext) {
    this.node = node
    this.#context = context
  }

  /** Whether everything that the node was known to hold is here. */
  get isComplete(): boolean {
    return this.#sync === undefined
  }

  changes({ version, entries, departures }: MessageOf<'changes'>): void {
    // Until the first part comes, changes are what the parts will have in them.
    if (version <= this.#version || this.#sync?.nextIndex === 0) return
    if (version > this.#version + 1) {
      this.#wantAll()
      return
    }
    this.#version = version
    for (const entry of entries) this.#take(entry)
    for (const departure of departures) {
      this.#sync?.unseen.delete(addressOf(departure.key, departure.id))
      this.#context.depart(this.node, departure)
    }
  }

  lease(version: number): void {
    if (this.#sync === undefined && version > this.#version) this.#wantAll()
  }

  part({ round, index, version, isLast, entries }: MessageOf<'part'>): void {
    const sync = this.#sync
    if (sync === undefined || round !== sync.round || index < sync.nextIndex) return
    if (index === 0) this.#version = version
    else if (index > sync.nextIndex || version !== this.#version) {
      this.#wantAll()
      return
    }
    sync.nextIndex = index + 1
    sync.hasProgress = true
    for (const entry of entries) this.#take(entry)
    if (!isLast) return
    for (const address of sync.unseen) {
      const [key = '', id = ''] = address.split(' ')
      this.#context.roster.remove(this.node, key, id)
    }
    this.#sync = undefined
    this.#context.onComplete()
  }

  /** Called now and then: asks again when nothing has come since the last call. */
  retry(): void {
    if (this.#sync === undefined) return
    if (this.#sync.hasProgress) this.#sync.hasProgress = false
    else this.#wantAll()
  }

  /** What was asked for is lost: asks again. */
  restart(): void {
    if (this.#sync !== undefined) this.#wantAll()
  }

  #take(entry: Entry): void {
    this.#sync?.unseen.delete(addressOf(entry.key, entry.member.id))
    this.#context.take(entry)
  }

  #wantAll(): void {
    const round = ++this.#roundCount
    const unseen = new Set(this.#context.roster.entriesOf(this.node).keys())
    this.#sync = { round, nextIndex: 0, unseen, hasProgress: true }
    this.#context.want(this.node, round)
  }
}
