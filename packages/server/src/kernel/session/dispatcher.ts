import {
  type ClientMessage,
  type ClientVerb,
  decodeClientPart,
  type MessagePart,
  partOf,
  refusalOf,
  WebMQError,
} from 'webmq-client/protocol'
import type { PublishTimings } from '../../features/observing/measuring/publish-timings.js'
import { isPromise, type MaybePromise } from '../base/maybe-promise.js'
import type { HookPort } from '../identity/hook-port.js'
import { MessageRun } from '../ports/message-run.js'
import type { Behind } from '../publishing/author.js'
import type { Refusals } from '../publishing/refusals.js'
import type { MessageOf, VerbRow, VerbTable } from './handlers/handler.js'
import { publish } from './handlers/publish.js'
import { Inbox, kept } from './inbox.js'
import type { Session } from './session.js'
import { decodingUnits, handlingUnits, headerUnits, REFUSAL_UNITS, receivingUnits } from './work/costs.js'
import type { SessionQueue } from './work/session-queue.js'
import { Turns, type TurnsContext } from './work/turns.js'

/** Memory of messages of a connection that wait behind an earlier one. */
const MAX_WAITING_BYTES = 1_048_576
/** The same while its token is still being verified. */
const MAX_UNVERIFIED_WAITING_BYTES = 65_536

export interface DispatcherContext
  extends Pick<TurnsContext<Session>, 'transport' | 'limits' | 'maxMessageBytes' | 'onError'> {
  readonly verbs: VerbTable
  /** They are asked about messages that are no publishes. Absent when they want none. */
  readonly hooks?: HookPort | undefined
  readonly refusals: Pick<Refusals, 'add'>
  /** Is told when a message arrived that had to wait. */
  readonly publishes: Pick<PublishTimings, 'receivedMs'>
}

/**
 * Passes messages of connections to the handlers, in order per connection. A connection that has used up its turn waits
 * behind the others, see {@link Turns}. Which messages wait for an earlier one is decided by the connection's
 * {@link Inbox}; a `ping` never waits there.
 */
export class Dispatcher {
  readonly #verbs: VerbTable
  readonly #hooks: HookPort | undefined
  readonly #refusals: DispatcherContext['refusals']
  /** The work of the connections, and their turns. */
  readonly turns: Turns<Session>
  /** Protocol messages of clients that were handled or refused. */
  receivedCount = 0

  constructor(context: DispatcherContext) {
    this.#verbs = context.verbs
    this.#hooks = context.hooks
    this.#refusals = context.refusals
    const { publishes } = context
    this.turns = new Turns<Session>({
      ...context,
      handle: (queue, run, hasWaited) => {
        if (!hasWaited) return this.#take(queue, run, run.isBinary)
        publishes.receivedMs = run.receivedMs
        try {
          this.#take(queue, run, run.isBinary)
        } finally {
          publishes.receivedMs = 0
        }
      },
      begin: (queue) => {
        if (queue.inbox?.isDue === true) this.#release(queue, queue.inbox)
      },
    })
  }

  /** @param data Borrowed for the duration of the call. */
  receive(session: Session, data: Uint8Array, isBinary: boolean): void {
    if (session.isClosed) return
    const queue = this.turns.queueOf(session)
    if (queue.firstRun === undefined && !queue.isOver) this.#take(queue, partOf(data), isBinary)
    else this.#receiveRun(queue, MessageRun.of(data, isBinary))
  }

  /** Messages that arrived together. */
  receiveRun(session: Session, run: MessageRun): void {
    if (!session.isClosed) this.#receiveRun(this.turns.queueOf(session), run)
  }

  #receiveRun(queue: SessionQueue<Session>, run: MessageRun): void {
    if (this.turns.receive(queue, run)) return
    while (run.next()) this.#refuseExcess(queue.owner, run)
  }

  #take(queue: SessionQueue<Session>, part: MessagePart, isBinary: boolean): void {
    const session = queue.owner
    const byteCount = part.end - part.start
    this.receivedCount++
    session.receivedCount++
    queue.charge(receivingUnits(byteCount))
    let message: ClientMessage
    try {
      message = decodeClientPart(part)
    } catch (error) {
      queue.charge(headerUnits(byteCount))
      this.#refuse(session, error, undefined, error instanceof WebMQError ? error.requestId : undefined)
      if (error instanceof WebMQError && error.code === 'E_MESSAGE_INVALID') session.countMalformed()
      return
    }
    queue.charge(decodingUnits(message, byteCount))
    const { inbox } = queue
    if (inbox === undefined || message.verb === 'ping' || !inbox.holds(message)) {
      this.#handle(queue, message, isBinary)
    } else if (
      !inbox.push(message, isBinary, session.state === 'active' ? MAX_WAITING_BYTES : MAX_UNVERIFIED_WAITING_BYTES)
    ) {
      // The one that waits for the broker has been refused: its gate refuses this one, too, and says when to come back.
      if (message.verb === 'publish' && inbox.isRefused) {
        this.#handle(queue, message, isBinary)
        return
      }
      const code = session.state === 'authenticating' ? 'E_UNAUTHENTICATED' : 'E_BROKER_UNAVAILABLE'
      const error = refusalOf(code, { detail: 'too many messages wait behind an earlier one' })
      this.#refuse(session, error, message)
    }
  }

  /** The transport cannot leave messages in the socket, and there is no room to keep them. */
  #refuseExcess(session: Session, part: MessagePart): void {
    this.receivedCount++
    session.receivedCount++
    const refusal = refusalOf('E_RATE_LIMIT')
    let message: ClientMessage | undefined
    let id: string | undefined
    try {
      message = decodeClientPart(part)
    } catch (error) {
      // A malformed message is refused like the others.
      id = error instanceof WebMQError ? error.requestId : undefined
    }
    this.#refuse(session, refusal, message, id)
  }

  #handle(queue: SessionQueue<Session>, message: ClientMessage, isBinary: boolean): void {
    const session = queue.owner
    const hooks = this.#hooks
    // The publisher asks about publishes itself.
    const isAsked = hooks !== undefined && session.state === 'active' && !isPublish(message)
    const ask = isAsked ? this.#rowOf(message).ask : undefined
    if (isAsked && ask !== undefined) this.#ask(() => ask(hooks, session, message), session, message, isBinary)
    else this.#handleNow(queue, message, isBinary)
  }

  #ask(
    ask: () => MaybePromise<ClientMessage | undefined>,
    session: Session,
    message: ClientMessage,
    isBinary: boolean,
  ): void {
    const handle = (changed: ClientMessage | undefined, asked: ClientMessage) => {
      if (!session.isClosed) this.#handleNow(this.turns.queueOf(session), changed ?? asked, isBinary)
    }
    const refuse = (error: unknown) => {
      if (!session.isClosed) this.#refuse(session, error, message)
    }
    let asked: MaybePromise<ClientMessage | undefined>
    try {
      asked = ask()
    } catch (error) {
      refuse(error)
      return
    }
    if (!isPromise(asked)) {
      handle(asked, message)
      return
    }
    const own = kept(message)
    this.waitFor(
      session,
      asked.then((changed) => handle(changed, own), refuse),
    )
  }

  /**
   * All later messages of the connection wait.
   * @param pending Never rejects.
   */
  waitFor(session: Session, pending: Promise<void>, behind?: Behind): void {
    const inbox = this.#inboxOf(session)
    inbox.shut(behind)
    void pending.finally(() => {
      inbox.open(behind)
      this.#resume(session)
    })
  }

  #handleNow(queue: SessionQueue<Session>, message: ClientMessage, isBinary: boolean): void {
    const session = queue.owner
    queue.charge(handlingUnits(message))
    try {
      if (session.state === 'authenticating' && message.verb !== 'auth' && message.verb !== 'ping') {
        throw refusalOf('E_UNAUTHENTICATED')
      }
      // By its name: a look-up by a variable one took 2 % of the server's time in a flood of publishes.
      const pending =
        message.verb === 'publish'
          ? publish(session, session.services, message, isBinary)
          : this.#rowOf(message).handle(session, session.services, message, isBinary)
      if (pending !== undefined) this.#wait(session, message, pending)
    } catch (error) {
      this.#refuse(session, error, message)
    }
  }

  /** @param message `undefined` when it could not be read. */
  #refuse(session: Session, error: unknown, message: ClientMessage | undefined, id = message && idOf(message)): void {
    this.turns.queueOf(session).charge(REFUSAL_UNITS)
    const { code } = session.refuse(error, id)
    this.#refusals.add(session, message?.verb ?? 'message', code, message && targetOf(message))
  }

  #wait(session: Session, message: ClientMessage, pending: Promise<void>): void {
    const settled = pending.catch((error: unknown) => {
      if (!session.isClosed) this.#refuse(session, error, message)
    })
    if (isPublish(message)) return
    const inbox = this.#inboxOf(session)
    inbox.began(message)
    void settled.finally(() => {
      inbox.ended(message)
      this.#resume(session)
    })
  }

  #rowOf(message: ClientMessage): VerbRow<ClientVerb> {
    const name = isOfGroup(message) ? GROUP_VERBS[message.verb] : message.verb
    // The table pairs every verb with its row, but the compiler cannot infer that from an index.
    return this.#verbs[name] as VerbRow<ClientVerb>
  }

  #inboxOf(session: Session): Inbox {
    const queue = this.turns.queueOf(session)
    queue.inbox ??= new Inbox(session.services.isLogged)
    return queue.inbox
  }

  /** Something has ended that messages may have waited for. */
  #resume(session: Session): void {
    if (session.isClosed) return
    const queue = this.turns.queueOf(session)
    const { inbox } = queue
    if (inbox === undefined) return
    // A thousand messages may wait, and a hundred requests may end in one turn of the event loop. One look serves them all.
    if (queue.isOver && !inbox.isEmpty) this.turns.enqueue(queue)
    else this.#release(queue, inbox)
  }

  /** Handles waiting messages that nothing holds any more, as many as the turn of the session allows. */
  #release(queue: SessionQueue<Session>, inbox: Inbox): void {
    const { owner: session } = queue
    const units = inbox.release(
      ({ message, isBinary, arrivedMs }) => {
        queue.arrivedMs = arrivedMs
        if (!session.isClosed) this.#handle(queue, message, isBinary)
        queue.arrivedMs = undefined
      },
      () => !queue.isOver || session.isClosed,
    )
    queue.charge(units)
    if (inbox.isDue) this.turns.enqueue(queue)
    if (inbox.isEmpty) queue.inbox = undefined
  }
}

const GROUP_VERBS = { listen: 'join', unlisten: 'leave' } as const

function isOfGroup(message: ClientMessage): message is MessageOf<'listen' | 'unlisten'> {
  return (message.verb === 'listen' || message.verb === 'unlisten') && message.group !== undefined
}

/** Later messages do not wait for one that is published. */
function isPublish(message: ClientMessage): boolean {
  return message.verb === 'publish' || message.verb === 'request' || message.verb === 'stream'
}

function targetOf(message: ClientMessage): string | undefined {
  if ('key' in message) return message.key
  return 'pattern' in message ? message.pattern : undefined
}

function idOf(message: ClientMessage): string | undefined {
  return 'id' in message ? message.id : undefined
}
