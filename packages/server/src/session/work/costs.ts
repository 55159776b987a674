import type { ClientMessage } from 'webmq-client/protocol'

/** Receiving and decoding a message. */
const RECEIVE_UNITS = 0.5
/** Bytes that are received, decoded and copied per unit. */
const BYTES_IN_PER_UNIT = 2_000
/** An error is created with its stack, and its answer is encoded. */
export const REFUSAL_UNITS = 15

/** Units of work, about a microsecond each, per verb without what depends on its size. The answer is included. */
const VERB_UNITS: { readonly [V in ClientMessage['verb']]: number } = {
  // A signature: 20 us with a shared secret, 60 us with RSA, 200 us with a curve.
  auth: 100,
  // A route, a group, and a binding at the broker.
  listen: 10,
  unlisten: 6,
  publish: 1,
  history: 10,
  // The id of a member is a hash.
  presence: 10,
  ping: 1,
}

/** A listen with a wildcard ends the answers that the router remembers. */
const WILDCARD_UNITS = 10

/** Units of receiving a message. */
export function receivingUnits(byteCount: number): number {
  return RECEIVE_UNITS + byteCount / BYTES_IN_PER_UNIT
}

/** Units of handling a message, without what its handler counts by itself. */
export function handlingUnits(message: ClientMessage): number {
  const units = VERB_UNITS[message.verb]
  if (message.verb !== 'listen' && message.verb !== 'unlisten') return units
  const { pattern } = message
  // One node of each trie per word, and a word has two characters or more, with its dot.
  return units + pattern.length / 4 + (pattern.includes('*') || pattern.includes('#') ? WILDCARD_UNITS : 0)
}

/** A member is stored at its key and for its node, with a new stamp. */
const ENTER_UNITS = 10
/** Bytes of data that are parsed and written again per unit. */
const DATA_BYTES_PER_UNIT = 100
/** Bytes of the members of a key that are encoded, copied and sent per unit: no answer is larger. */
const MEMBER_BYTES_PER_UNIT = 400
/** Bytes of a member in a difference, beside its data. */
export const MEMBER_BYTES = 60
/** The same of one that has left. */
export const DEPARTURE_BYTES = 40

/** Units of entering, beside those of the verb. @param length Of the data. */
export function enteringUnits(length: number): number {
  return ENTER_UNITS + length / DATA_BYTES_PER_UNIT
}

/** Units of answering with the members of a key. */
export function membersUnits(byteCount: number): number {
  return byteCount / MEMBER_BYTES_PER_UNIT
}
