import { type ClientMessage, MAX_HEADER_BYTES } from 'webmq-client/protocol'

// Estimates, rounded, from runs on a busy machine: they only have to keep the dear apart from the cheap.

/** Receiving and decoding a message. */
const RECEIVE_UNITS = 0.5
/** Bytes that are received, decoded and copied per unit. */
const BYTES_IN_PER_UNIT = 2_000
/** Bytes of a header that the general decoder reads per unit. 180 options, 1.9 kB, took up to 77 us. */
const HEADER_BYTES_PER_UNIT = 40
/** A longer header of a publish is not a plain one, or has a key that costs as much. */
const PLAIN_HEADER_BYTES = 100
/** An error without a stack is created and thrown, and its answer is encoded. */
export const REFUSAL_UNITS = 5
/** Steps of the router per unit; one is about 10 ns. */
const STEPS_PER_UNIT = 100
/** A key that the router does not remember is split, looked up word by word, and remembered. */
const MATCH_UNITS = 4
/** A message id is hashed, looked up and remembered. */
const MESSAGE_ID_UNITS = 4

/** Units of work, about a microsecond each, per verb without what depends on its size. The answer is included. */
const VERB_UNITS: { readonly [V in ClientMessage['verb']]: number } = {
  // A signature: 20 us with a shared secret, 60 us with RSA, 200 us with a curve.
  auth: 100,
  // A route, a group, and a binding at the broker.
  listen: 10,
  unlisten: 6,
  publish: 1,
  // It is looked at in the log before the answer.
  stream: 30,
  // A pattern is bound, the log is read, and the pattern released.
  read: 60,
  // A number, a deadline, and two frames between nodes.
  request: 15,
  reply: 10,
  history: 15,
  // The id of a member is a hash.
  presence: 15,
  ping: 1,
}

/** A pattern of 32 words, 63 characters, took 15 us. */
const PATTERN_CHARS_PER_UNIT = 8
/** A listen with a wildcard ends the answers that the router remembers. */
const WILDCARD_UNITS = 10

export function receivingUnits(byteCount: number): number {
  return RECEIVE_UNITS + byteCount / BYTES_IN_PER_UNIT
}

/** Units of decoding a header with the general decoder. @param byteCount Of the whole message. */
export function headerUnits(byteCount: number): number {
  return Math.min(byteCount, MAX_HEADER_BYTES) / HEADER_BYTES_PER_UNIT
}

/** Units of decoding a message, beside receiving it. */
export function decodingUnits(message: ClientMessage, byteCount: number): number {
  switch (message.verb) {
    case 'ping':
      return 0
    case 'publish':
    case 'stream':
    case 'request':
    case 'reply':
      return Math.max(0, byteCount - message.payload.length - PLAIN_HEADER_BYTES) / HEADER_BYTES_PER_UNIT
    case 'auth':
      // Each character of a token is checked.
      return byteCount / HEADER_BYTES_PER_UNIT
    case 'presence':
      return headerUnits(byteCount - (message.op === 'enter' ? (message.data?.length ?? 0) : 0))
    default:
      return headerUnits(byteCount)
  }
}

/** Units of handling a message, without what its handler counts by itself. */
export function handlingUnits(message: ClientMessage): number {
  switch (message.verb) {
    // By its name: a look-up by a variable one took 2 % of the server's time in a flood of publishes.
    case 'publish':
      return message.messageId === undefined ? VERB_UNITS.publish : VERB_UNITS.publish + MESSAGE_ID_UNITS
    case 'listen':
    case 'unlisten':
      return VERB_UNITS[message.verb] + patternUnits(message.pattern)
    default:
      return VERB_UNITS[message.verb]
  }
}

/** Units of matching a key. @param stepCount Steps that the router has taken; none for a key that it remembers. */
export function matchingUnits(stepCount: number): number {
  return stepCount === 0 ? 0 : MATCH_UNITS + stepCount / STEPS_PER_UNIT
}

/** One node of each trie per word. */
function patternUnits(pattern: string): number {
  return pattern.length / PATTERN_CHARS_PER_UNIT + (pattern.includes('*') || pattern.includes('#') ? WILDCARD_UNITS : 0)
}
