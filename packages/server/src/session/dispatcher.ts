import {
  type ClientMessage,
  type ClientVerb,
  decodeClientMessage,
  type ErrorCode,
  WebMQError,
} from 'webmq-client/protocol'
import type { Handler } from './handlers/handler.js'
import { handlers } from './handlers/index.js'
import { Inbox } from './inbox.js'
import type { Session } from './session.js'

/** What may wait behind a message of a connection; of one whose token is still being verified, less. */
const MAX_WAITING_BYTES = 1_048_576
const MAX_STRANGER_WAITING_BYTES = 65_536

/**
 * Takes what connections send to the handlers. Messages of a connection are handled in their order: while one waits for
 * the verifier or the broker, later ones wait behind it, within a bound. Only a `publish` is not waited for (the broker
 * keeps the order), and a `ping` never waits.
 */
export class Dispatcher {
  /** Connections that have a message waiting for something. */
  readonly #inboxes = new Map<Session, Inbox>()
  readonly #pending = new Set<Promise<void>>()
  readonly #refusedCounts: { [Code in ErrorCode]?: number } = {}
  #receivedCount = 0

  /** Protocol messages that were answered with an error, by its code. */
  get refusedCounts(): Readonly<Partial<Record<ErrorCode, number>>> {
    return { ...this.#refusedCounts }
  }

  /** Protocol messages that connections have sent. */
  get receivedCount(): number {
    return this.#receivedCount
  }

  /** Resolves when everything that is being handled now has been answered. */
  async settled(): Promise<void> {
    await Promise.all(this.#pending)
  }

  /** @param data Borrowed for the time of the call. */
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
    if (inbox === undefined) this.#handle(session, message, isBinary)
    else if (!inbox.push(message, isBinary)) {
      const code = session.state === 'authenticating' ? 'E_UNAUTHENTICATED' : 'E_BROKER_UNAVAILABLE'
      const error = new WebMQError(code, { detail: 'too many messages wait for an earlier one' })
      this.#refuse(session, error, idOf(message))
    }
  }

  #handle(session: Session, message: ClientMessage, isBinary: boolean): void {
    try {
      if (session.state === 'authenticating' && message.verb !== 'auth' && message.verb !== 'ping') {
        throw new WebMQError('E_UNAUTHENTICATED')
      }
      // The table pairs every verb with the handler of its message; the compiler does not follow that through an index.
      const handler = handlers[message.verb] as Handler<ClientVerb>
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
    const isWaitedFor = message.verb !== 'publish'
    if (isWaitedFor)
      this.#inboxes.set(session, new Inbox(session.state === 'active' ? MAX_WAITING_BYTES : MAX_STRANGER_WAITING_BYTES))
    const answered = pending
      .catch((error: unknown) => {
        if (!session.isClosed) this.#refuse(session, error, idOf(message))
      })
      .finally(() => {
        this.#pending.delete(answered)
        if (isWaitedFor) this.#resume(session)
      })
    this.#pending.add(answered)
  }

  #resume(session: Session): void {
    const inbox = this.#inboxes.get(session)
    this.#inboxes.delete(session)
    if (inbox === undefined) return
    while (!session.isClosed && !this.#inboxes.has(session)) {
      const next = inbox.shift()
      if (next === undefined) return
      this.#handle(session, next.message, next.isBinary)
    }
    // A message that waits again keeps what is behind it waiting too.
    if (this.#inboxes.has(session)) this.#inboxes.set(session, inbox)
  }
}

function idOf(message: ClientMessage): string | undefined {
  return 'id' in message ? message.id : undefined
}
