import { type ClientMessage, type ClientVerb, decodeClientMessage, refusalOf, WebMQError } from 'webmq-client/protocol'
import { isPromise, type MaybePromise } from '../base/maybe-promise.js'
import type { HookCalls } from '../hooks/index.js'
import type { PublishTimings } from '../observing/measuring/publish-timings.js'
import type { MessageMemory } from '../ports/transport.js'
import type { Refusals } from '../publishing/refusals.js'
import { askAbout } from './asking.js'
import type { Handler } from './handlers/handler.js'
import { handlers } from './handlers/index.js'
import { Inbox, kept } from './inbox.js'
import type { Session } from './session.js'
import type { WorkAccount } from './work/account.js'
import { decodingUnits, handlingUnits, headerUnits, REFUSAL_UNITS, receivingUnits } from './work/costs.js'
import { Turns, type TurnsContext } from './work/turns.js'

/** Memory of messages of a connection that wait behind an earlier one. */
const MAX_WAITING_BYTES = 1_048_576
/** The same while its token is still being verified. */
const MAX_UNVERIFIED_WAITING_BYTES = 65_536

/** What a {@link Dispatcher} works with. */
export interface DispatcherContext
  extends Pick<TurnsContext<Session>, 'transport' | 'limits' | 'maxMessageBytes' | 'onError'> {
  /** Absent unless messages of clients are shown to hooks. */
  readonly hooks?: HookCalls | undefined
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
  /** Of sessions with a message in progress that later messages may wait for. */
  readonly #inboxes = new Map<Session, Inbox>()
  readonly #hooks: HookCalls | undefined
  readonly #refusals: DispatcherContext['refusals']
  /** The work of the connections, and their turns. */
  readonly turns: Turns<Session>
  #receivedCount = 0

  constructor(context: DispatcherContext) {
    this.#hooks = context.hooks
    this.#refusals = context.refusals
    const { publishes } = context
    this.turns = new Turns<Session>({
      ...context,
      handle: (account, { data, isBinary, receivedMs }) => {
        publishes.receivedMs = receivedMs
        try {
          this.#take(account, data, isBinary)
        } finally {
          publishes.receivedMs = 0
        }
      },
      begin: ({ owner }) => {
        const inbox = this.#inboxes.get(owner)
        if (inbox?.isDue) this.#release(owner, inbox)
      },
      released: (session) => this.#inboxes.delete(session),
    })
  }

  /** Protocol messages received from clients. */
  get receivedCount(): number {
    return this.#receivedCount
  }

  /** @param data Borrowed for the duration of the call, or as long as `memory` is held. */
  receive(session: Session, data: Uint8Array, isBinary: boolean, memory?: MessageMemory): void {
    if (session.isClosed) return
    this.#receivedCount++
    session.receivedCount++
    const account = this.turns.accountOf(session)
    if (account.backlog.isEmpty && !account.isOver) this.#take(account, data, isBinary)
    else if (!this.turns.defer(account, data, isBinary, memory)) this.#refuseExcess(session, data, isBinary)
  }

  #take(account: WorkAccount<Session>, data: Uint8Array, isBinary: boolean): void {
    const session = account.owner
    account.charge(receivingUnits(data.length))
    let message: ClientMessage
    try {
      message = decodeClientMessage(data, isBinary)
    } catch (error) {
      account.charge(headerUnits(data.length))
      this.#refuse(session, error, undefined, error instanceof WebMQError ? error.requestId : undefined)
      if (error instanceof WebMQError && error.code === 'E_MESSAGE_INVALID') session.countMalformed()
      return
    }
    account.charge(decodingUnits(message, data.length))
    const inbox = this.#inboxes.size === 0 || message.verb === 'ping' ? undefined : this.#inboxes.get(session)
    if (inbox === undefined || !inbox.holds(message)) this.#handle(session, account, message, isBinary)
    else if (
      !inbox.push(message, isBinary, session.state === 'active' ? MAX_WAITING_BYTES : MAX_UNVERIFIED_WAITING_BYTES)
    ) {
      const code = session.state === 'authenticating' ? 'E_UNAUTHENTICATED' : 'E_BROKER_UNAVAILABLE'
      const error = refusalOf(code, { detail: 'too many messages wait behind an earlier one' })
      this.#refuse(session, error, message)
    }
  }

  /** The transport cannot leave messages in the socket, and there is no room to keep them. */
  #refuseExcess(session: Session, data: Uint8Array, isBinary: boolean): void {
    const refusal = refusalOf('E_RATE_LIMIT')
    let message: ClientMessage | undefined
    let id: string | undefined
    try {
      message = decodeClientMessage(data, isBinary)
    } catch (error) {
      // A malformed message is refused like the others.
      id = error instanceof WebMQError ? error.requestId : undefined
    }
    this.#refuse(session, refusal, message, id)
  }

  #handle(session: Session, account: WorkAccount<Session>, message: ClientMessage, isBinary: boolean): void {
    // The publisher asks about publishes itself.
    const isAsked = this.#hooks !== undefined && session.state === 'active' && !isPublish(message)
    if (isAsked) this.#ask(this.#hooks, session, message, isBinary)
    else this.#handleNow(session, account, message, isBinary)
  }

  #ask(hooks: HookCalls, session: Session, message: ClientMessage, isBinary: boolean): void {
    const handle = (changed: ClientMessage | undefined, asked: ClientMessage) => {
      if (!session.isClosed) this.#handleNow(session, this.turns.accountOf(session), changed ?? asked, isBinary)
    }
    const refuse = (error: unknown) => {
      if (!session.isClosed) this.#refuse(session, error, message)
    }
    let asked: MaybePromise<ClientMessage | undefined>
    try {
      asked = askAbout(hooks, session, message)
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
  waitFor(session: Session, pending: Promise<void>): void {
    const inbox = this.#inboxOf(session)
    inbox.shut()
    void pending.finally(() => {
      inbox.open()
      this.#resume(session, inbox)
    })
  }

  #handleNow(session: Session, account: WorkAccount<Session>, message: ClientMessage, isBinary: boolean): void {
    account.charge(handlingUnits(message))
    try {
      if (session.state === 'authenticating' && message.verb !== 'auth' && message.verb !== 'ping') {
        throw refusalOf('E_UNAUTHENTICATED')
      }
      // The table pairs every verb with its handler, but the compiler cannot infer that from an index.
      const handler = handlers[message.verb] as Handler<ClientVerb>
      const pending = handler(session, session.services, message, isBinary)
      if (pending !== undefined) this.#wait(session, message, pending)
    } catch (error) {
      this.#refuse(session, error, message)
    }
  }

  /** @param message `undefined` when it could not be read. */
  #refuse(session: Session, error: unknown, message: ClientMessage | undefined, id = message && idOf(message)): void {
    this.turns.accountOf(session).charge(REFUSAL_UNITS)
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
      this.#resume(session, inbox)
    })
  }

  #inboxOf(session: Session): Inbox {
    let inbox = this.#inboxes.get(session)
    if (inbox === undefined) {
      inbox = new Inbox(session.services.isLogged)
      this.#inboxes.set(session, inbox)
    }
    return inbox
  }

  /** Something has ended that messages may have waited for. */
  #resume(session: Session, inbox: Inbox): void {
    if (session.isClosed) {
      this.#inboxes.delete(session)
      return
    }
    // A thousand messages may wait, and a hundred requests may end in one turn of the event loop. One look serves them all.
    const account = this.turns.accountOf(session)
    if (account.isOver && !inbox.isEmpty) this.turns.enqueue(account)
    else this.#release(session, inbox)
  }

  /** Handles waiting messages that nothing holds any more, as many as the turn of the session allows. */
  #release(session: Session, inbox: Inbox): void {
    const account = this.turns.accountOf(session)
    const { releaseUnits } = inbox
    const isReleased = inbox.release(
      ({ message, isBinary }) => {
        if (!session.isClosed) this.#handle(session, account, message, isBinary)
      },
      () => !account.isOver || session.isClosed,
    )
    account.charge(releaseUnits)
    if (!isReleased) this.turns.enqueue(account)
    if (inbox.isEmpty) this.#inboxes.delete(session)
  }
}

/** Later messages do not wait for one that is published. */
function isPublish(message: ClientMessage): boolean {
  return message.verb === 'publish' || message.verb === 'request'
}

function targetOf(message: ClientMessage): string | undefined {
  if ('key' in message) return message.key
  return 'pattern' in message ? message.pattern : undefined
}

function idOf(message: ClientMessage): string | undefined {
  return 'id' in message ? message.id : undefined
}
