import { WebMQError } from 'webmq-client/protocol'
import type { PublishTimings } from '../../features/observing/measuring/publish-timings.js'
import { type Observer, observePublish } from '../../features/observing/observer.js'
import { type Tracer, tracedPublish, withTraceparent } from '../../features/observing/tracing/tracer.js'
import { defined } from '../base/defined.js'
import { isPromise, type MaybePromise } from '../base/maybe-promise.js'
import { isTrusted } from '../identity/actor.js'
import type { MessageAttributes } from '../ports/attributes.js'
import type { Accepted, Broker, OutboundMessage } from '../ports/broker.js'
import { type Author, gateOf } from './author.js'
import { brokerMessageId, bytesOf, clientOwner, type Draft, outboundOf, PENDING_OVERHEAD_BYTES } from './draft.js'
import type { PublishRates } from './publish-rates.js'
import type { Stamps } from './stamps.js'
import type { WaitingRoom } from './waiting-room.js'

export interface OutgoingContext {
  readonly broker: Pick<Broker, 'publish' | 'publishBatch'>
  /** Steps that all matches have taken, see {@link Author.matched}. */
  readonly router: { readonly stepCount: number }
  readonly waitingRoom: Pick<WaitingRoom, 'retryAfterMs'>
  readonly rates: Pick<PublishRates, 'unanswered'>
  readonly stamps: Pick<Stamps, 'of'>
  /** Measures some of the publishes. */
  readonly timings: Pick<PublishTimings, 'begin'>
  readonly tracer: Pick<Tracer, 'publish'> | undefined
  readonly observer: Observer | undefined
}

/** The last steps to the broker, of what may be published now: a message is stamped, traced and timed, and observers are told. */
export class Outgoing {
  readonly #context: OutgoingContext

  constructor(context: OutgoingContext) {
    this.#context = context
  }

  /** What the broker gets. */
  message(author: Author, draft: Draft, isBinary: boolean): OutboundMessage {
    const { key, messageId: id, trace, echo, place } = draft
    const { userId } = author
    const owner = place !== undefined ? 'stream' : isTrusted(author) ? 'server' : clientOwner(userId)
    const messageId = id === undefined ? undefined : brokerMessageId(owner, key, id)
    const publisher = echo === false ? author.connection : undefined
    const connection = author.connection === undefined ? undefined : author
    const plain = outboundOf(key, bytesOf(draft), isBinary, messageId, publisher, connection)
    const stamped = this.#context.stamps.of({ key, userId, messageId, isEphemeral: draft.ephemeral === true })
    const attributes = place === undefined ? stamped : { ...stamped, stream: place, ...streamAttributes(draft) }
    const message = attributes === undefined ? plain : { ...plain, attributes }
    return trace === undefined ? message : withTraceparent(message, trace)
  }

  /** @param repeatId Under which its author sends it again when it is refused. */
  send(author: Author, message: OutboundMessage, repeatId?: string): MaybePromise<Accepted> {
    const { broker, observer, router, timings, tracer } = this.#context
    const timing = timings.begin(message)
    const traceparent = message.attributes?.traceparent
    // Only a broker that delivers at once matches the key here. The messages of others are matched for nobody.
    const stepCount = router.stepCount
    const accepted =
      traceparent === undefined ? broker.publish(message) : tracedPublish(broker, tracer, message, traceparent)
    author.matched?.(router.stepCount - stepCount)
    if (observer !== undefined) observePublish(observer, author, message, accepted)
    if (!isPromise(accepted)) {
      timing?.accepted()
      return accepted
    }
    if (timing === undefined && isTrusted(author)) return accepted
    const byteCount = message.payload.length + PENDING_OVERHEAD_BYTES
    author.pendingBytes += byteCount
    return accepted.then(
      (accepted) => {
        author.pendingBytes -= byteCount
        timing?.accepted()
        return accepted
      },
      (error: unknown) => {
        author.pendingBytes -= byteCount
        throw this.#againOf(author, repeatId, error)
      },
    )
  }

  /** A broker that does not answer in time may do so later: who would send the message again is told when. */
  #againOf(author: Author, repeatId: string | undefined, error: unknown): unknown {
    const gate = gateOf(author)
    const isUnanswered = error instanceof WebMQError && error.code === 'E_TIMEOUT'
    if (!isUnanswered || gate === undefined || repeatId === undefined || author.isClosed) return error
    const { rates, waitingRoom } = this.#context
    return rates.unanswered(gate, repeatId, error, () => waitingRoom.retryAfterMs(1))
  }

  /** Waits for all confirmations of a remote broker at once. */
  sendAll(
    author: Author,
    messages: readonly OutboundMessage[],
    pendingBytes: number,
  ): MaybePromise<readonly Accepted[]> {
    const { broker } = this.#context
    // A message with a trace has a span of its own, which ends with its own acknowledgement.
    const isOneCall = messages.length > 1 && messages.every(({ attributes }) => attributes?.traceparent === undefined)
    if (broker.publishBatch !== undefined && isOneCall) return this.#sentAtOnce(author, messages, pendingBytes)
    const results = new Array<Accepted>(messages.length)
    const waiting: Promise<unknown>[] = []
    try {
      for (let index = 0; index < messages.length; index++) {
        const accepted = this.send(author, messages[index] as OutboundMessage)
        if (isPromise(accepted)) waiting.push(accepted.then((accepted) => (results[index] = accepted)))
        else results[index] = accepted
      }
    } catch (error) {
      // Earlier messages may be on their way; their failures are awaited too.
      waiting.push(Promise.reject(error))
    }
    return waiting.length > 0 ? Promise.all(waiting).then(() => results) : results
  }

  async #sentAtOnce(
    author: Author,
    messages: readonly OutboundMessage[],
    pendingBytes: number,
  ): Promise<readonly Accepted[]> {
    const { observer, timings } = this.#context
    const broker = this.#context.broker as Required<OutgoingContext['broker']>
    const timing = timings.begin(messages[0] as OutboundMessage)
    const published = broker.publishBatch(messages)
    if (observer?.published !== undefined) {
      messages.forEach((message, index) => {
        const own = published.then((all) => all[index] as Accepted)
        observePublish(observer, author, message, own)
      })
    }
    author.pendingBytes += pendingBytes
    try {
      const accepted = await published
      timing?.accepted()
      return accepted
    } finally {
      author.pendingBytes -= pendingBytes
    }
  }
}

function streamAttributes({ owner, checksum, isInterim }: Draft): MessageAttributes {
  return defined({ owner, checksum, isInterim: isInterim === true ? isInterim : undefined })
}
