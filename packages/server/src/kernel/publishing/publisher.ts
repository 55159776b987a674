import { refusalOf, WebMQError } from 'webmq-client/protocol'
import { copyBytes } from '../base/copy-bytes.js'
import { deferred } from '../base/deferred.js'
import { isPromise, type MaybePromise } from '../base/maybe-promise.js'
import { assertMayPublish } from '../identity/access.js'
import { isTrusted } from '../identity/actor.js'
import type { HookPort } from '../identity/hook-port.js'
import type { Accepted, OutboundMessage } from '../ports/broker.js'
import type { Transport } from '../ports/transport.js'
import { assertKeyWords } from '../ports/word-limits.js'
import { type Author, assertRoom, gateOf } from './author.js'
import { type BatchDraft, bytesOf, type Draft, PENDING_OVERHEAD_BYTES, refuseItem } from './draft.js'
import { Outgoing, type OutgoingContext } from './outgoing.js'
import { type PublishRates, UNLIMITED } from './publish-rates.js'
import type { Responders, TakenRequest } from './requests.js'
import type { WaitingRoom } from './waiting-room.js'

export interface PublisherContext extends OutgoingContext {
  /** Where publishers wait for a broker that is too slow. */
  readonly waitingRoom: Pick<WaitingRoom, 'isNeeded' | 'enter' | 'retryAfterMs'>
  readonly responders: Responders
  /** Asks publishers without a session to wait. */
  readonly transport: Pick<Transport, 'writable'>
  /** Absent unless a hook is asked about publishes. */
  readonly hooks: Pick<HookPort, 'publish'> | undefined
  readonly rates: Pick<PublishRates, 'pass' | 'isPausing' | 'refusedByBroker' | 'unanswered' | 'assertFirst'>
}

interface InTurn {
  readonly byteCount: number
  readonly messageCount: number
  readonly repeatId?: string | undefined
  /** How often it was refused before. */
  readonly refusedCount: number
}

type Go<T> = (author: Author, draft: Draft, isBinary: boolean) => MaybePromise<T>

/**
 * The one way of a message to the broker, through whichever door it comes: key and grant are checked, the rate is counted,
 * hooks are asked, then the message is stamped, traced and timed, goes to the broker and the queue groups, and observers
 * are told. Returns no promise unless a hook or the broker takes its time.
 */
export class Publisher {
  readonly #context: PublisherContext
  readonly #outgoing: Outgoing
  readonly #send: Go<Accepted> = (author, draft, isBinary) =>
    this.#outgoing.send(author, this.#outgoing.message(author, draft, isBinary), repeatIdOf(draft))

  constructor(context: PublisherContext) {
    this.#context = context
    this.#outgoing = new Outgoing(context)
  }

  /**
   * Publishes a message. Returns or resolves once the broker has accepted it.
   * @throws {WebMQError} `E_PAYLOAD_TOO_LARGE`, `E_KEY_INVALID`, `E_FORBIDDEN`, `E_RATE_LIMIT` with `retryAfterMs`, the
   *   refusal of a hook or `E_HOOK_FAILED`, and the errors of {@link Broker.publish}.
   */
  publish(author: Author, draft: Draft, isBinary: boolean): MaybePromise<Accepted> {
    const byteCount = draft.payload.length
    this.#check(author, draft)
    assertRoom(author, byteCount + PENDING_OVERHEAD_BYTES)
    const repeatId = repeatIdOf(draft)
    const refusedCount = this.#passRate(author, byteCount, 1, repeatId)
    const isEphemeral = draft.ephemeral === true
    const accepted = this.#mustWait(author)
      ? this.#inTurn(
          author,
          { byteCount, messageCount: 1, repeatId, refusedCount },
          this.#kept(author, draft),
          (draft) => this.#approved(author, draft, isBinary, isEphemeral, this.#send),
        )
      : this.#approved(author, draft, isBinary, isEphemeral, this.#send)
    return author.connection === undefined ? this.#whenWritable(accepted) : accepted
  }

  /**
   * Publishes messages in order, or none of them when one is refused. The error says which.
   * @param draftAt Each draft is used before the next is asked for, unless hooks are asked.
   * @throws {WebMQError} As {@link publish}.
   */
  publishAll(author: Author, count: number, draftAt: (index: number) => BatchDraft): MaybePromise<readonly Accepted[]> {
    const messages = new Array<OutboundMessage>(count)
    let byteCount = 0
    for (let index = 0; index < count; index++) {
      try {
        const draft = draftAt(index)
        this.#check(author, draft)
        messages[index] = this.#outgoing.message(author, draft, draft.isBinary)
        byteCount += draft.payload.length
      } catch (error) {
        refuseItem(index, error)
      }
    }
    const pendingBytes = byteCount + count * PENDING_OVERHEAD_BYTES
    assertRoom(author, pendingBytes)
    this.#passRate(author, byteCount, count)
    const send = (messages: readonly OutboundMessage[]) => this.#outgoing.sendAll(author, messages, pendingBytes)
    const sendInTurn = (messages: readonly OutboundMessage[]) =>
      this.#whenWritable(
        this.#mustWait(author)
          ? this.#inTurn(author, { byteCount, messageCount: count, refusedCount: 0 }, messages, send)
          : send(messages),
      )
    if (this.#context.hooks === undefined || isTrusted(author)) return sendInTurn(messages)
    // Every answer is awaited: while hooks decide about one message, another may be refused at once.
    const approved = messages.map(async (message, index) => {
      try {
        const keep: Go<OutboundMessage> = (author, draft, isBinary) =>
          draft === given ? message : this.#outgoing.message(author, draft, isBinary)
        const given = draftAt(index)
        return await this.#approved(author, given, given.isBinary, given.ephemeral === true, keep)
      } catch (error) {
        return refuseItem(index, error)
      }
    })
    return Promise.all(approved).then(sendInTurn)
  }

  /** Hands a request to one responder. @throws {WebMQError} As {@link publish} and {@link Responders.ask}. */
  request(author: Author, draft: Draft, isBinary: boolean, withinMs: number): MaybePromise<TakenRequest> {
    const { responders } = this.#context
    responders.assertSupported()
    this.#check(author, draft)
    const byteCount = draft.payload.length
    assertRoom(author, byteCount + PENDING_OVERHEAD_BYTES)
    this.#passRate(author, byteCount, 1)
    // No log has a request.
    const ask = (draft: Draft) =>
      this.#approved(author, draft, isBinary, true, (_, draft, isBinary) =>
        this.#counted(
          author,
          byteCount,
          responders.ask({ key: draft.key, payload: bytesOf(draft), isBinary }, withinMs, author),
        ),
      )
    if (!this.#mustWait(author)) return ask(draft)
    return this.#inTurn(author, { byteCount, messageCount: 1, refusedCount: 0 }, this.#kept(author, draft), ask)
  }

  /** Checks the limits of keys and payloads, then the grant. */
  #check(author: Author, { key, payload }: Draft): void {
    const { maxPayloadBytes } = author.limits
    // A program wants to know which of its lines was wrong.
    const createError = author.door === 'process' ? undefined : refusalOf
    if (payload.length > maxPayloadBytes) {
      const detail = `${payload.length} bytes, at most ${maxPayloadBytes}`
      throw createError?.('E_PAYLOAD_TOO_LARGE', { detail }) ?? new WebMQError('E_PAYLOAD_TOO_LARGE', { detail })
    }
    assertKeyWords(key, author.limits, createError)
    assertMayPublish(author, key)
  }

  /** Counts what waits for a node that has not answered. */
  #counted<T>(author: Author, byteCount: number, result: MaybePromise<T>): MaybePromise<T> {
    if (!isPromise(result)) return result
    const bytes = byteCount + PENDING_OVERHEAD_BYTES
    author.pendingBytes += bytes
    return result.finally(() => {
      author.pendingBytes -= bytes
    })
  }

  #passRate(author: Author, byteCount: number, count: number, repeatId?: string): number {
    const { rates } = this.#context
    const { publishing = rates.isPausing ? UNLIMITED : undefined } = author.limits
    if (publishing === undefined) return 0
    const gate = author.publishGateOf?.(publishing.ofConnection)
    return rates.pass(gate, author.userId, publishing, byteCount, count, repeatId)
  }

  #mustWait(author: Author): boolean {
    return this.#context.waitingRoom.isNeeded && !isTrusted(author)
  }

  /** The broker is too slow for more: waits until it is this one's turn, or is refused with a time to come back. */
  #inTurn<Kept, T>(
    author: Author,
    { byteCount, messageCount, repeatId, refusedCount }: InTurn,
    kept: Kept,
    go: (kept: Kept) => MaybePromise<T>,
  ): Promise<T> {
    const { rates, waitingRoom } = this.#context
    const bytes = byteCount + messageCount * PENDING_OVERHEAD_BYTES
    author.pendingBytes += bytes
    return new Promise<T>((resolve, reject) => {
      const { promise: decided, resolve: decide } = deferred<void>()
      const behind = waitingRoom.enter({
        ...{ author, messageCount, byteCount: bytes, refusedCount },
        arrivedMs: author.arrivedMs ?? performance.now(),
        go: () => {
          author.pendingBytes -= bytes
          try {
            const gate = gateOf(author)
            if (gate !== undefined) rates.assertFirst(gate, repeatId)
            resolve(go(kept))
          } catch (error) {
            reject(error)
          }
          decide()
        },
        refuse: (retryAfterMs) => {
          author.pendingBytes -= bytes
          const refusal = () => rates.refusedByBroker(gateOf(author), repeatId, retryAfterMs, refusedCount)
          reject(author.isClosed ? refusalOf('E_DISCONNECTED') : refusal())
          decide()
        },
      })
      author.hold?.(answeredFirst(decided), behind)
    })
  }

  /** A draft of a session borrows its payload; that of a request is its own. */
  #kept(author: Author, draft: Draft): Draft {
    return author.connection === undefined ? draft : { ...draft, payload: copyBytes(bytesOf(draft)) }
  }

  /** Asks the hooks, and goes on with what they have made of the message. That is checked again. */
  #approved<T>(author: Author, draft: Draft, isBinary: boolean, isEphemeral: boolean, go: Go<T>): MaybePromise<T> {
    const { hooks } = this.#context
    if (hooks === undefined || isTrusted(author)) return go(author, draft, isBinary)
    const asked = hooks.publish(author, draft.key, bytesOf(draft), isBinary, isEphemeral)
    const goOn = (change: Awaited<typeof asked>, draft: Draft): MaybePromise<T> => {
      if (change === undefined) return go(author, draft, isBinary)
      const { key, content } = change
      const changed = { ...draft, key, payload: content?.payload ?? draft.payload }
      this.#check(author, changed)
      const isChangedBinary = content?.isBinary ?? isBinary
      draft.assertChange?.(changed, isChangedBinary)
      return go(author, changed, isChangedBinary)
    }
    return isPromise(asked) ? this.#whenDecided(author, draft, asked, goOn) : goOn(asked, draft)
  }

  /** The hooks take their time: the message is kept, and counts as pending. */
  #whenDecided<Change, T>(
    author: Author,
    draft: Draft,
    asked: Promise<Change>,
    goOn: (change: Change, draft: Draft) => MaybePromise<T>,
  ): Promise<T> {
    const own = this.#kept(author, draft)
    const byteCount = draft.payload.length + PENDING_OVERHEAD_BYTES
    author.pendingBytes += byteCount
    return new Promise((resolve, reject) => {
      // It is handed to the broker before later messages of the author go on.
      const decided = asked
        .finally(() => {
          author.pendingBytes -= byteCount
        })
        .then((change) => {
          if (author.isClosed) throw refusalOf('E_DISCONNECTED')
          resolve(goOn(change, own))
        })
        .catch(reject)
      author.hold?.(answeredFirst(decided))
    })
  }

  /** Delays the result while the transport asks publishers to wait. */
  #whenWritable<T>(result: MaybePromise<T>): MaybePromise<T> {
    const writable = this.#context.transport.writable?.()
    return writable === undefined ? result : Promise.all([result, this.#untilWritable()]).then(([settled]) => settled)
  }

  async #untilWritable(): Promise<void> {
    const { transport } = this.#context
    for (let wait = transport.writable?.(); wait !== undefined; wait = transport.writable?.()) await wait
  }
}

/** A refusal is answered two calls of handlers later, and before those that waited behind its message. */
async function answeredFirst(decided: Promise<void>): Promise<void> {
  await decided
  await undefined
  await undefined
}

/** The id under which its author sends it again when it is refused. */
function repeatIdOf({ id, messageId, place }: Draft): string | undefined {
  return id === undefined && place === undefined ? undefined : messageId
}
