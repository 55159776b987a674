import {
  type ClientMessage,
  type ClientVerb,
  decodeClientMessage,
  type ErrorCode,
  WebMQError,
} from 'webmq-client/protocol'
import type { Handler } from './handlers/handler.js'
import { handlers, type SessionContext } from './handlers/index.js'
import { Inbox } from './inbox.js'
import type { Session } from './session.js'

/** Payload bytes of a connection that may wait behind an earlier message. */
const MAX_WAITING_BYTES = 1_048_576
/** The same while its token is still being verified. */
const MAX_UNVERIFIED_WAITING_BYTES = 65_536

/**
 * Passes messages of connections to the handlers, in order per connection. Which messages wait for an earlier one is
 * decided by the connection's {@link Inbox}. A `ping` never waits.
 */
export class Dispatcher {
  /** Of sessions with a message in progress that later messages may wait for. */
  readonly #inboxes = new Map<Session, Inbox>()
  readonly #refusedCounts: { [Code in ErrorCode]?: number } = {}
  #receivedCount = 0

  /** Protocol messages that were answered with an error, by error code. */
  get refusedCounts(): Readonly<Partial<Record<ErrorCode, number>>> {
    return { ...this.#refusedCounts }
  }

  /** Protocol messages received from clients. */
  get receivedCount(): number {
    return this.#receivedCount
  }

  /** @param data Borrowed for the duration of the call. */
  receive(session: Session, data: Uint8Array, isBinary: boolean): void {
    if (session.isClosed) return
    this.#receivedCount++
    let message: ClientMessage
    try {
      message = decodeClientMessage(data, isBinary)
    } catch (error) {
      this.#refuse(session, error, error instanceof WebMQError ? error.requestId : undefined)
      if (error instanceof WebMQError && error.code === 'E_MESSAGE_INVALID') session.countMalformed()
      return
    }
    const inbox = this.#inboxes.size === 0 || message.verb === 'ping' ? undefined : this.#inboxes.get(session)
    if (inbox === undefined || !inbox.holds(message)) this.#handle(session, message, isBinary)
    else if (
      !inbox.push(message, isBinary, session.state === 'active' ? MAX_WAITING_BYTES : MAX_UNVERIFIED_WAITING_BYTES)
    ) {
      const code = session.state === 'authenticating' ? 'E_UNAUTHENTICATED' : 'E_BROKER_UNAVAILABLE'
      const error = new WebMQError(code, { detail: 'too many messages wait behind an earlier one' })
      this.#refuse(session, error, idOf(message))
    }
  }

  #handle(session: Session, message: ClientMessage, isBinary: boolean): void {
    try {
      if (session.state === 'authenticating' && message.verb !== 'auth' && message.verb !== 'ping') {
        throw new WebMQError('E_UNAUTHENTICATED')
      }
      // The table pairs every verb with its handler, but the compiler cannot infer that from an index.
      const handler = handlers[message.verb] as Handler<ClientVerb, SessionContext>
      const pending = handler(session, message, isBinary)
      if (pending !== undefined) this.#wait(session, message, pending)
    } catch (error) {
      this.#refuse(session, error, idOf(message))
    }
  }

  #refuse(session: Session, error: unknown, id: string | undefined): void {
    const { code } = session.refuse(error, id)
    this.#refusedCounts[code] = (this.#refusedCounts[code] ?? 0) + 1
  }

  #wait(session: Session, message: ClientMessage, pending: Promise<void>): void {
    const isPublish = message.verb === 'publish'
    const inbox = isPublish ? undefined : this.#inboxOf(session)
    inbox?.began(message)
    void pending
      .catch((error: unknown) => {
        if (!session.isClosed) this.#refuse(session, error, idOf(message))
      })
      .finally(() => {
        if (inbox !== undefined) this.#resume(session, inbox, message)
      })
  }

  #inboxOf(session: Session): Inbox {
    let inbox = this.#inboxes.get(session)
    if (inbox === undefined) {
      inbox = new Inbox((key) => session.isLogged(key))
      this.#inboxes.set(session, inbox)
    }
    return inbox
  }

  #resume(session: Session, inbox: Inbox, ended: ClientMessage): void {
    inbox.ended(ended, ({ message, isBinary }) => {
      if (!session.isClosed) this.#handle(session, message, isBinary)
    })
    if (inbox.isEmpty) this.#inboxes.delete(session)
  }
}

function idOf(message: ClientMessage): string | undefined {
  return 'id' in message ? message.id : undefined
}
