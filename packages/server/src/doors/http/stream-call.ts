import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Actor } from '../../kernel/identity/actor.js'
import type { Author } from '../../kernel/publishing/author.js'
import type { Bodies, BodySender } from './body.js'
import type { HttpContext } from './context.js'

/** A request at the address of a stream. */
export interface AddressCall extends Pick<HttpContext, 'options' | 'hooks'> {
  readonly bodies: Bodies
  /** Of its body: the caller. */
  readonly sender: BodySender
  readonly charge: (byteCount: number) => void
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly caller: Actor
  /** The caller, as long as it waits for the answer: it writes, and pays for what is read of the log. */
  readonly author: Author
  readonly key: string
}

type Answer = (call: AddressCall) => Promise<void>

/** Answers requests at the addresses of streams, by their methods. */
export interface StreamAddress {
  /** GET and HEAD. */
  readonly read: Answer
  /** PUT. */
  readonly create: Answer
  /** POST. */
  readonly append: Answer
  /** DELETE. */
  readonly delete: Answer
}
