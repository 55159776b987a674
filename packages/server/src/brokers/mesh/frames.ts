/** Version of what nodes say to each other; nodes of different versions do not link. */
export const MESH_VERSION = 2

/**
 * A frame is its length (4 bytes, little endian, of what follows), its type (1 byte), and a body. Those from 16 to 31 are counted by
 * both sides: the number of a frame is never sent, it is its place in the stream of one node to another.
 */
export const FRAME = {
  /** Who speaks, and a nonce. */
  hello: 1,
  /** Knowledge of the secret, over both hellos. */
  proof: 2,
  /** Why there will be no link; see {@link REFUSAL}. */
  refuse: 3,
  /** By the node with the lower id: this is the link to use from now on. */
  start: 4,
  /** By the other one: so be it. */
  started: 5,

  /** A message with a payload in text. */
  text: 16,
  binary: 17,
  /** The sender listens with this pattern from now on. */
  add: 18,
  remove: 19,
  /** Everything that the sender listened with when the stream began has been told. */
  ready: 20,
  /** The receiver's patterns are known: what matches them comes from now on. Says whether messages were accepted before. */
  live: 21,
  /** A message that is logged, has an id, or comes from the sender's log; see `message-frame.ts`. */
  marked: 22,
  /** What the sender's log has, per life of a node; the numbers by which it calls these lives. */
  have: 23,
  /** Lives whose messages are wanted from the receiver's log, and after which of them. */
  want: 24,
  /** Of a life that is wanted, the messages up to a sequence are gone; and for how long. */
  hole: 25,
  /** Lives, by number, of which all that was wanted has been sent, and up to which sequence. If the sender's own is among them, its messages come from now on as they are accepted. */
  fed: 26,
  /** The trace of the sender's log, or of that of a node which is gone. */
  traceStart: 27,
  /** How that of the sender goes on. */
  trace: 28,
  /** Messages that the sender's log does not have because others with their ids are there: origin and sequence of both. */
  leftOut: 29,

  /** Counted frames up to this number have been taken in. */
  ack: 32,
  heartbeat: 33,
  /** The sender leaves, and has said all. */
  goodbye: 34,
} as const

/** Bytes before the body: length and type. */
export const FRAME_HEAD_BYTES = 5

const FIRST_COUNTED = 16
const LAST_COUNTED = 31

/** Whether both sides count frames of this type. */
export function isCounted(type: number): boolean {
  return type >= FIRST_COUNTED && type <= LAST_COUNTED
}

/** Why a node refuses a link, as a number and in words. */
export const REFUSAL = {
  version: 1,
  namespace: 2,
  secret: 3,
  self: 4,
  busy: 5,
} as const

/** A reason of {@link REFUSAL}. */
export type Refusal = keyof typeof REFUSAL

/** What a refusal means, for the log. */
export const REFUSAL_TEXTS: Readonly<Record<Refusal, string>> = {
  version: `it speaks another version of the mesh protocol than ${MESH_VERSION}`,
  namespace: 'it belongs to another namespace (brokerNamespace)',
  secret: 'it has another secret (mesh.secret)',
  self: 'it is this node',
  busy: 'it has as many links as it may',
}

/** The reason that a number stands for; `undefined` for one of a later version. */
export function refusalOf(code: number): Refusal | undefined {
  return (Object.keys(REFUSAL) as Refusal[]).find((reason) => REFUSAL[reason] === code)
}

/** A whole frame of a body. */
export function encodeFrame(type: number, body: Uint8Array = EMPTY): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEAD_BYTES + body.length)
  frame.writeUInt32LE(1 + body.length, 0)
  frame[4] = type
  frame.set(body, FRAME_HEAD_BYTES)
  return frame
}

const EMPTY = new Uint8Array(0)
