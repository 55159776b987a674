import { encodeMeta, encodeServerMessage, type ListenOverflow, MessageFrame } from 'webmq-client/protocol'
import { andThen, isPromise, type MaybePromise } from '../base/maybe-promise.js'
import type { InboundMessage } from '../ports/broker.js'
import { formatPosition } from '../ports/position.js'
import type { ConnectionId, FrameData, Transport } from '../ports/transport.js'
import { ReplayFlow, type ReplayOutbox, ReplayPacer } from './flow.js'
import { firstByteCount, isRangeAsked, limitNewest, limitReplay, type RangeOptions, type Replay } from './replay.js'

export interface ReplaySenderContext extends ReplayOutbox {
  readonly transport: Pick<Transport, 'send'>
}

/** Whose connection has closed reads and gets nothing. */
export interface ReplayReader {
  readonly connection: ConnectionId
  readonly isClosed: boolean
}

export interface ReplayReceiver extends ReplayReader {
  /** Pays for the messages that are sent. */
  readonly meter: { charge(units: number): void }
}

export interface ReplayFrame {
  /** Valid until the next one. */
  readonly data: FrameData
  readonly isBinary: boolean
}

/** Units of work of a replayed message beside its bytes: its frame is created, and passed to the transport. */
const MESSAGE_UNITS = 1.5
/** Bytes that are encoded and passed to the transport per unit. */
const BYTES_PER_UNIT = 1_000

/** A `listen` or a `history`. */
export interface ReplayRequest extends RangeOptions {
  readonly id: string
  /** Its messages come with who published them, and when. */
  readonly meta?: true | undefined
}

/** How an answer differs from that of other requests. */
export interface ReplayAnswer {
  /** The answer says `recovered`: nothing after `since` is missing. */
  readonly isRecovered?: boolean
  /** Live messages follow the last page. */
  readonly becomesLive?: boolean
  /** What may be left out of the live messages; absent: nothing. */
  readonly overflow?: ListenOverflow | undefined
  /** The messages are the last ones of their keys. */
  readonly isState?: boolean
  /** Drops the oldest messages when they are too many. */
  readonly keepsNewest?: boolean
  /** Sends the newest messages first; only with `keepsNewest`. */
  readonly isNewestFirst?: boolean
}

const NOTHING: Replay = { messages: [], hasMore: false }

/**
 * Answers requests for messages of the log; one per node.
 *
 * `read` reads a page in its turn, then `send` sends it. The answer and its messages are sent in one go: nothing comes in
 * between.
 */
export class ReplaySender {
  readonly #context: ReplaySenderContext
  readonly #pacer = new ReplayPacer()
  /** Only of connections that asked for a replay: others cost nothing here. */
  readonly #flows = new Map<ConnectionId, ReplayFlow>()

  constructor(context: ReplaySenderContext) {
    this.#context = context
  }

  /** Notes what the read of a page costs the node in this turn of the event loop, beside its messages. */
  spend(units: number): void {
    this.#pacer.spend(units)
  }

  /**
   * Reads a page when the connection has room for one, and passes it to `use`, which sends it. Both run in one go if
   * `readPage` answers at once. A wait for the log holds no turn.
   * @param readPage May be called several times.
   */
  read<T>(
    reader: ReplayReader,
    readPage: () => MaybePromise<Replay>,
    use: (page: Replay) => MaybePromise<T>,
    { keepsNewest = false }: ReplayAnswer = {},
  ): MaybePromise<T> {
    const flow = this.#flowOf(reader)
    // A connection may close while hundreds of its requests wait.
    const readOpen = () => (flow.isReleased ? NOTHING : readPage())
    const inTurn = (page: Replay): MaybePromise<T> =>
      flow.fits(firstByteCount(page, keepsNewest)) ? use(page) : flow.page(() => andThen(readOpen(), use), true)
    return flow.page(() => {
      const first = readOpen()
      if (!isPromise(first)) return inTurn(first)
      return first.then((page) => {
        // A page that waits holds no messages: there may be thousands when a log catches up.
        let held: Replay | undefined = page
        const result = flow.page(() => (held === undefined ? andThen(readOpen(), inTurn) : inTurn(held)))
        if (page.messages.length > 0) held = undefined
        return result
      })
    })
  }

  /**
   * Sends the answer and as many of the messages as the receiver may get now. Its connection MUST be open.
   * Returns whether this was the last page; otherwise the client asks for the next one.
   */
  send(receiver: ReplayReceiver, request: ReplayRequest, replay: Replay, answer: ReplayAnswer = {}): boolean {
    const { isRecovered = false, isNewestFirst = false, isState = false, overflow } = answer
    const { messages, position, gap, hasMore } = this.take(receiver, replay, answer)
    const ok = encodeServerMessage({
      verb: 'ok',
      id: request.id,
      ...(position === undefined ? undefined : { position: formatPosition(position) }),
      ...(isRecovered ? { recovered: true } : undefined),
      ...(gap === undefined ? undefined : { gap }),
      ...(isRangeAsked(request) ? { replayed: messages.length } : undefined),
      ...(hasMore ? { more: true } : undefined),
      ...(isState ? { state: true } : undefined),
      ...(overflow === undefined ? undefined : { overflow }),
    })
    this.#context.transport.send(receiver.connection, ok, false)
    const encode = request.meta === true ? metaFrame : replayFrame
    this.deliver(receiver, isNewestFirst ? messages.toReversed() : messages, encode)
    return !hasMore
  }

  /** As much of a replay as the receiver may get now. The caller passes its messages to {@link deliver} in the same turn. */
  take(receiver: ReplayReceiver, replay: Replay, answer: ReplayAnswer = {}): Replay {
    // A listen without a replay keeps nothing for its connection: it would double what an idle one takes.
    if (replay.messages.length === 0) return replay
    const limit = answer.keepsNewest === true ? limitNewest : limitReplay
    const flow = this.#flowOf(receiver)
    const limited = limit(replay, (byteCount, isForced) => flow.take(byteCount, isForced))
    const { messages, position } = limited
    // A live message behind replayed ones that fill the outbox would close the connection. The client asks again when it
    // has read them.
    const isCrowded =
      answer.becomesLive === true && messages.length > 0 && position !== undefined && !flow.hasRoomForLive
    return isCrowded ? { ...limited, hasMore: true } : limited
  }

  /** Sends messages, which {@link take} has allowed. */
  deliver(
    { connection, meter }: ReplayReceiver,
    messages: readonly InboundMessage[],
    encode: (message: InboundMessage) => ReplayFrame,
  ): void {
    let units = 0
    for (const message of messages) {
      const { data, isBinary } = encode(message)
      this.#context.transport.send(connection, data, isBinary)
      units += MESSAGE_UNITS + message.payload.length / BYTES_PER_UNIT
    }
    meter.charge(units)
    this.#pacer.spend(units)
  }

  release(connection: ConnectionId): void {
    this.#flows.get(connection)?.release()
    this.#flows.delete(connection)
  }

  #flowOf({ connection, isClosed }: ReplayReader): ReplayFlow {
    const known = this.#flows.get(connection)
    if (known !== undefined) return known
    const flow = new ReplayFlow(connection, this.#context, this.#pacer)
    // Its connection closed while its request waited for something else: nobody will release it.
    if (isClosed) flow.release()
    else this.#flows.set(connection, flow)
    return flow
  }
}

/** Filled for one message after the other: a copy of each would be garbage at once. */
const frame = new MessageFrame()

export function replayFrame({ key, position, payload, isBinary, attributes }: InboundMessage): ReplayFrame {
  const place = attributes?.stream === undefined ? '' : encodeMeta({ stream: attributes.stream })
  return { data: frame.fill(key, position, true, payload, place), isBinary }
}

function metaFrame({ key, position, payload, isBinary, attributes = {} }: InboundMessage): ReplayFrame {
  return { data: frame.fill(key, position, true, payload, encodeMeta(attributes)), isBinary }
}
