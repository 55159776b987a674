import { WebMQError } from './errors.js'
import type { WirePayload } from './messages.js'

/** A server message that was split, but not interpreted: its verb belongs to a part of the client. */
export interface RawMessage {
  readonly verb: string
  /** The header's other fields. */
  readonly fields: readonly string[]
  readonly body: WirePayload | undefined
}

/** The text of a message, or of a part of it. */
export function textOf(data: WirePayload): string {
  // ignoreBOM: a key may begin with U+FEFF, which is an ordinary character here.
  return typeof data === 'string' ? data : new TextDecoder('utf-8', { ignoreBOM: true }).decode(data)
}

/** The body of a message as JSON. @throws {WebMQError} `E_MESSAGE_INVALID`. */
export function parse(verb: string, body: WirePayload): unknown {
  try {
    return JSON.parse(textOf(body))
  } catch (cause) {
    throw malformed(verb, cause)
  }
}

/** The body of a message as a JSON object. @throws {WebMQError} `E_MESSAGE_INVALID`. */
export function decodeObject(verb: string, body: WirePayload = ''): Readonly<Record<string, unknown>> {
  // A value that is not an object has none of the members that the caller reads.
  return { ...Object(parse(verb, body)) }
}

/** A message that breaks the rules of its verb. */
export function malformed(verb: string, cause?: unknown): WebMQError {
  return new WebMQError('E_MESSAGE_INVALID', { detail: verb, cause })
}
