import { matches } from './keys.js'
import type { Knowledge } from './known.js'
import { isAfter, isSameEpoch, type Place } from './place.js'
import type { ListenerEvent, MessageRecord, Received } from './record.js'
import type { Report } from './violation.js'

/** A message as one listen was given it. */
export interface Receipt {
  readonly index: number
  readonly atMs: number
  readonly epoch: string | undefined
}

/**
 * One listen, over all its connections. Its *frontier* is the place up to which it was given everything that it matches;
 * a gap ends that, until its next message.
 */
export class ListenState {
  readonly pattern: string
  readonly #owner: string
  readonly #knowledge: Knowledge
  readonly #report: Report
  /** At and before this place nothing comes any more. */
  place: Place | undefined
  frontier: Place | undefined
  isGapped = true
  isLive = false
  liveAtMs = Number.POSITIVE_INFINITY
  /** When it was live for the first time. */
  begunAtMs = Number.POSITIVE_INFINITY
  /**
   * Gaps by the index of their event, and of the last message of the replay that follows: messages may be missing in it.
   * What was published until `untilMs` may be missing, too.
   */
  readonly gaps: { readonly index: number; untilIndex: number; readonly atMs: number; untilMs: number }[] = []
  /** What is replayed now belongs to the last gap. */
  #isReplayGapped = false
  readonly receipts = new Map<string, Receipt[]>()
  /** On this connection, of keys that are not logged: ids, and the last sequence per publisher and key. */
  readonly #unlogged = new Map<string, number>()
  readonly #unloggedIds = new Set<string>()

  constructor(pattern: string, owner: string, knowledge: Knowledge, report: Report) {
    this.pattern = pattern
    this.#owner = owner
    this.#knowledge = knowledge
    this.#report = report
  }

  matches(key: string): boolean {
    return matches(this.pattern, key)
  }

  gap(index: number, atMs: number): void {
    this.gaps.push({ index, untilIndex: index, atMs, untilMs: atMs })
    this.#isReplayGapped = true
    this.isGapped = true
  }

  /** A listen that does not say where to continue is answered: a publish that has begun before has no place in it. */
  answeredAnew(atMs: number): void {
    const last = this.gaps.at(-1)
    if (last !== undefined) last.untilMs = atMs
  }

  /** A message is given, whether it is accepted or not. */
  given(index: number, isReplay: boolean): void {
    const last = this.gaps.at(-1)
    this.#isReplayGapped &&= isReplay
    if (last !== undefined && this.#isReplayGapped) last.untilIndex = index
  }

  ended(): void {
    this.isLive = false
    this.#isReplayGapped = false
    this.#unlogged.clear()
    this.#unloggedIds.clear()
  }

  /** Everything up to a place was given. */
  mark(place: Place, atMs: number, source: string): void {
    const { frontier } = this
    // After a gap, only the next message of the pattern says where the listen is again.
    if (frontier === undefined || this.isGapped || !isAfter(place, frontier)) return
    this.#expectNothingBetween(frontier, place.offset + 1, atMs, source)
    this.frontier = place
  }

  /** Takes a position for the beginning: what is before it is not owed. */
  begin(place: Place): void {
    this.frontier = place
    this.isGapped = false
  }

  accept(message: Received, place: Place | undefined, index: number, atMs: number): void {
    this.#expectOnce(message, place, index, atMs)
    if (place === undefined) {
      this.#acceptUnlogged(message, index, atMs)
      return
    }
    const { frontier } = this
    if (!this.isGapped && frontier !== undefined) {
      if (isSameEpoch(frontier, place)) this.#expectNothingBetween(frontier, place.offset, atMs, message.id)
      else this.#report('epoch-unannounced', atMs, this.#owner, `${this.#name(message)} after ${frontier.epoch}`)
    }
    this.begin(place)
    this.place = place
  }

  /** A message that is not after the place of the listen. */
  refuse(message: Received, atMs: number): void {
    const isTwice = this.receipts.has(message.id)
    const after = this.place === undefined ? '' : `, after offset ${this.place.offset.toString(36)}`
    this.#report(isTwice ? 'twice' : 'out-of-order', atMs, this.#owner, `${this.#name(message)}${after}`)
  }

  /** @param before The first offset that is not checked. */
  #expectNothingBetween(frontier: Place, before: number, atMs: number, source: string): void {
    const entries = this.#knowledge.logs.get(frontier.epoch) ?? []
    for (let at = firstAfter(entries, frontier.offset); at < entries.length; at++) {
      const entry = entries[at]
      if (entry === undefined || entry.offset >= before) return
      // A message that the listen has had from a lost log need not come again from the next one.
      if (!this.matches(entry.key) || this.receipts.has(entry.id)) continue
      const where = `${frontier.epoch}:${entry.offset.toString(36)}`
      this.#report('lost', atMs, this.#owner, `${this.pattern}: ${entry.id} at ${where} is missing before ${source}`)
    }
  }

  #expectOnce(message: Received, place: Place | undefined, index: number, atMs: number): void {
    const receipt: Receipt = { index, atMs, epoch: place?.epoch }
    const before = this.receipts.get(message.id)
    if (before === undefined) {
      this.receipts.set(message.id, [receipt])
      return
    }
    const last = before.at(-1)
    before.push(receipt)
    // Within an epoch the positions tell. What is not logged has none, and only the connection counts.
    if (place === undefined || last?.epoch === undefined || last.epoch === place.epoch) return
    const known = this.#knowledge.messages.get(message.id)
    // Another log knows no ids of the first: what was not answered yet was published, and is given, again. A node of a
    // mesh that is behind has yet to get, live, what its client has had from another node.
    const isPublishedAgain = known?.attempts.some(({ settledAtMs = Infinity }) => settledAtMs > last.atMs) ?? false
    if (isPublishedAgain || this.#knowledge.rules.log === 'per-node') return
    this.#report('twice', atMs, this.#owner, `${this.#name(message)}, and in the log ${last.epoch}`)
  }

  /**
   * Whether a message of a key that is not logged, given at an index, was in the air when the listen began or was told a
   * gap: what a node or a client had no answer for is sent again, and the first copy was not for this listen. One of the two
   * may wait in a broken link until its fault is over.
   */
  mayBeSecondCopy({ key, attempts }: MessageRecord, index: number, atMs: number): boolean {
    if (this.#knowledge.isLogged(key)) return false
    const gapsMs = this.gaps.filter((gap) => gap.index < index).map((gap) => gap.atMs)
    return attempts.some(({ sentAtMs, settledAtMs = Infinity }) => {
      const isHeld = this.#knowledge.mayBeHeld(sentAtMs, settledAtMs, atMs)
      return [this.begunAtMs, ...gapsMs].some((fromMs) => sentAtMs <= fromMs && (isHeld || fromMs <= settledAtMs))
    })
  }

  /** Once and in order per connection. */
  #acceptUnlogged(message: Received, index: number, atMs: number): void {
    const known = this.#knowledge.messages.get(message.id)
    if (known === undefined) return
    const mayComeAgain = this.#knowledge.mayComeAgain(known)
    const stream = `${known.publisher} ${known.key}`
    const last = this.#unlogged.get(stream) ?? -1
    if (this.#unloggedIds.has(message.id)) {
      if (!mayComeAgain) this.#report('twice', atMs, this.#owner, this.#name(message))
      return
    }
    this.#unloggedIds.add(message.id)
    // The retry of a refused publish has the place of the retry.
    if (known.sequence < last && !known.wasRefused && !mayComeAgain && !this.mayBeSecondCopy(known, index, atMs)) {
      this.#report('out-of-order', atMs, this.#owner, `${this.#name(message)}, after number ${last}`)
    }
    this.#unlogged.set(stream, Math.max(last, known.sequence))
  }

  #name({ id, position }: Received): string {
    return `${this.pattern}: ${id} at ${position}`
  }
}

/** Index of the first entry after an offset. */
function firstAfter(entries: readonly { readonly offset: number }[], offset: number): number {
  let [low, high] = [0, entries.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((entries[middle]?.offset ?? 0) > offset) high = middle
    else low = middle + 1
  }
  return low
}

export type EventOf<W extends ListenerEvent['what']> = Extract<ListenerEvent, { what: W }>
