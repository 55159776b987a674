import type { GapReason } from 'webmq-client/protocol'
import type { InboundMessage, Position, Reader, ReadRange, ReadResult } from '../../ports/broker.js'
import { andThen, type MaybePromise } from '../../ports/maybe-promise.js'
import { beforeMessages, joinPositions, placeIn } from '../../ports/position.js'
import type { Partition } from './partition.js'

/** Until the partition has answered. */
const NO_PLACE: Position = { epoch: '', offset: 0 }

/** The rest of a read, in one partition. */
interface Open {
  readonly partition: Partition
  readonly range: ReadRange
}

/**
 * One read over several partitions. Each gets a share of the page; what one leaves, the others get in another round. The
 * messages of a page come in the order of their log times, those of one partition in its order.
 */
export class JointRead {
  readonly #range: ReadRange
  readonly #patterns: readonly string[]
  readonly #reader: Reader | undefined
  readonly #messages: InboundMessage[] = []
  /** By partition, in the order of the partitions. */
  readonly #ends = new Map<Partition, Position>()
  #gap: GapReason | undefined
  #isCut = false

  constructor(range: ReadRange, patterns: readonly string[], reader: Reader | undefined) {
    this.#range = range
    this.#patterns = patterns
    this.#reader = reader
  }

  /** @throws {WebMQError} As {@link Broker.read}, when one of the partitions cannot be read. */
  async run(partitions: readonly Partition[]): Promise<ReadResult> {
    const { last, limit = Number.POSITIVE_INFINITY } = this.#range
    // The newest of all partitions may all be of one of them.
    const isOnePage = last !== undefined && last <= limit
    let open = await Promise.all(partitions.map((partition) => this.#opened(partition)))
    for (let left = isOnePage ? Number.POSITIVE_INFINITY : limit; open.length > 0; ) {
      const foundCount = this.#messages.length
      const share = Math.max(1, Math.floor(left / open.length))
      const round = open.slice(0, foundCount === 0 ? open.length : left)
      const rest = open.slice(round.length)
      const answers = await Promise.all(round.map((each) => this.#read(each, share)))
      open = [...rest, ...answers.filter((each) => each !== undefined)]
      left -= this.#messages.length - foundCount
      const isOver = left <= 0 || this.#reader?.isClosed === true || this.#messages.length === foundCount
      if (isOver) break
    }
    return this.#result(open.length > 0)
  }

  async #opened(partition: Partition): Promise<Open> {
    // In the order of the partitions, whichever answers first.
    this.#ends.set(partition, NO_PLACE)
    const { range, isForeign } = await rangeIn(partition, this.#range)
    if (isForeign) this.#gap ??= 'epoch-changed'
    return { partition, range: { ...range, hasTimes: true } }
  }

  /** @returns The rest to read of the partition, if any. */
  async #read({ partition, range }: Open, share: number): Promise<Open | undefined> {
    const limited = Number.isFinite(share) ? { ...range, limit: share } : withoutLimit(range)
    const result = await partition.use((broker) => broker.read(limited, this.#patterns, this.#reader))
    this.#ends.set(partition, partition.tagged(result.position))
    for (const message of result.messages) this.#messages.push(partition.taggedMessage(message))
    this.#gap ??= result.gap
    if (result.isCut === true) this.#isCut = true
    if (!result.isPartial) return undefined
    const { last: _, rewindMs: __, ...onward } = range
    return { partition, range: { ...onward, since: result.position } }
  }

  #result(isPartial: boolean): ReadResult {
    const { last, limit = Number.POSITIVE_INFINITY } = this.#range
    const messages = this.#messages.sort((one, other) => (one.loggedMs ?? 0) - (other.loggedMs ?? 0))
    const isOnePage = last !== undefined && last <= limit
    const kept = isOnePage ? messages.slice(Math.max(0, messages.length - last)) : messages.slice(0, limit)
    const dropped = isOnePage ? [] : messages.slice(kept.length)
    const ends = joinPositions([...this.#ends.values()]) as Position
    return {
      messages: kept,
      position: beforeMessages(ends, dropped),
      isPartial: isPartial || dropped.length > 0,
      ...(isOnePage && this.#isCut && kept.length < last ? { isCut: true as const } : undefined),
      ...(this.#gap === undefined ? undefined : { gap: this.#gap }),
    }
  }
}

/** A read of one partition; answers at once if the partition does. */
export function readOne(
  partition: Partition,
  asked: ReadRange,
  patterns: readonly string[],
  reader: Reader | undefined,
): MaybePromise<ReadResult> {
  return andThen(rangeIn(partition, asked), ({ range, isForeign }) =>
    andThen(
      partition.use((broker) => broker.read(range, patterns, reader)),
      (result) => ({
        ...result,
        messages: result.messages.map((message) => partition.taggedMessage(message)),
        position: partition.tagged(result.position),
        ...(isForeign ? { gap: 'epoch-changed' as const } : undefined),
      }),
    ),
  )
}

/** The range in one partition. @returns `isForeign`: its position has no place in this partition. */
function rangeIn(
  partition: Partition,
  { since, before, ...rest }: ReadRange,
): MaybePromise<{ readonly range: ReadRange; readonly isForeign: boolean }> {
  const upTo = before === undefined ? undefined : partition.untagged(placeIn(before, partition.index) ?? before)
  const range = { ...rest, ...(upTo === undefined ? undefined : { before: upTo }) }
  if (since === undefined) return { range, isForeign: false }
  const place = placeIn(since, partition.index)
  if (place !== undefined) return { range: { ...range, since: partition.untagged(place) }, isForeign: false }
  // What came since then in this partition is unknown, and what the log holds may be older than that.
  return andThen(
    partition.use((broker) => broker.position()),
    (end) => ({ range: end === undefined ? range : { ...range, since: end }, isForeign: true }),
  )
}

function withoutLimit({ limit: _, ...range }: ReadRange): ReadRange {
  return range
}
