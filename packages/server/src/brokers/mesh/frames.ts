/** Version of what nodes say to each other; nodes of different versions do not link. */
export const MESH_VERSION = 3

/**
 * A frame is its length (4 bytes, little endian, of what follows), its type (1 byte), and a body. Both sides count the frames from
 * 16 to 31: the number of a frame is its place in the stream from one node to another, and is never sent.
 */
export const FRAME = {
  /** The sender's identity, and a nonce. */
  hello: 1,
  /** Knowledge of the secret, over both hellos. */
  proof: 2,
  /** A reason why there is no link; see {@link REFUSAL}. */
  refuse: 3,
  /** From the node with the lower id: use this connection as the link from now on. */
  start: 4,
  /** The answer of the other node. */
  started: 5,

  /** A message with a payload in text. */
  text: 16,
  binary: 17,
  /** The same with a message id. */
  textWithId: 18,
  binaryWithId: 19,
  /** The sender wants what matches this pattern. */
  add: 20,
  remove: 21,
  /** The sender has told all patterns that it had when the stream began. */
  ready: 22,
  /** The receiver's patterns are known: from now on it is sent what matches. One byte: 1 if the sender has accepted messages before. */
  live: 23,

  /** Counted frames up to this number have been taken in. */
  ack: 32,
  /** Answered with `pong`. */
  ping: 33,
  pong: 34,
  /** The sender leaves; nothing follows. One byte: 1 if it has accepted messages without knowing the receiver's patterns. */
  goodbye: 35,
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
