/** Version of the protocol between nodes. Nodes of different versions do not link. */
export const MESH_VERSION = 5

/**
 * A frame is its length (4 bytes, little endian, of the rest), its type (1 byte), and a body. Both sides count frames
 * of the types 16 to 31. A frame's sequence number is its index in the stream between two nodes; it is never sent.
 */
export const FRAME = {
  /** The sender's identity, and a nonce. */
  hello: 1,
  /** Proof that the sender knows the secret, computed over both hellos. */
  proof: 2,
  /** The sender refuses a link, for a reason of {@link REFUSAL}. */
  refuse: 3,
  /** From the node with the lower id: this connection is the link from now on. */
  start: 4,
  started: 5,

  text: 16,
  binary: 17,
  /** As above, with a message id. */
  textWithId: 18,
  binaryWithId: 19,
  /** As above, with attributes and perhaps a message id. */
  textWithAttributes: 24,
  binaryWithAttributes: 25,
  /** The sender wants messages that match this pattern. */
  add: 20,
  remove: 21,
  /** The sender has sent all patterns that it had when the stream began. */
  ready: 22,
  /**
   * The sender knows the receiver's patterns and sends matching messages from now on. One byte: 1 if it accepted
   * messages before.
   */
  live: 23,

  /** The sender has received all counted frames up to this number. */
  ack: 32,
  ping: 33,
  pong: 34,
  /** The sender leaves; its last frame. One byte: 1 if it accepted messages without knowing the receiver's patterns. */
  goodbye: 35,
} as const

/** Bytes before the body: length and type. */
export const FRAME_HEAD_BYTES = 5

const FIRST_COUNTED = 16
const LAST_COUNTED = 31

export function isCounted(type: number): boolean {
  return type >= FIRST_COUNTED && type <= LAST_COUNTED
}

export const REFUSAL = {
  version: 1,
  namespace: 2,
  secret: 3,
  self: 4,
  busy: 5,
} as const

export type Refusal = keyof typeof REFUSAL

export const REFUSAL_TEXTS: Readonly<Record<Refusal, string>> = {
  version: `it speaks another version of the mesh protocol than ${MESH_VERSION}`,
  namespace: 'it belongs to another namespace (brokerNamespace)',
  secret: 'it has another secret (mesh.secret)',
  self: 'it is this node',
  busy: 'it has as many links as it may',
}

/** The reason with this number; `undefined` for a reason of a later version. */
export function refusalOf(code: number): Refusal | undefined {
  return (Object.keys(REFUSAL) as Refusal[]).find((reason) => REFUSAL[reason] === code)
}

export function encodeFrame(type: number, body: Uint8Array = EMPTY): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEAD_BYTES + body.length)
  frame.writeUInt32LE(1 + body.length, 0)
  frame[4] = type
  frame.set(body, FRAME_HEAD_BYTES)
  return frame
}

const EMPTY = new Uint8Array(0)

/** Bytes of {@link Start.streamId}. */
export const STREAM_ID_BYTES = 8
const NUMBER_BYTES = 6
const RECEIVED_AT = 1
const GENERATION_AT = RECEIVED_AT + NUMBER_BYTES
const STREAM_ID_AT = GENERATION_AT + NUMBER_BYTES

/** The body of a `started` frame; `start` begins with it. */
export interface Started {
  /** Whether the streams of the last link continue; otherwise new ones begin. */
  readonly isResumed: boolean
  /** Number of counted frames that the sender has received. */
  readonly received: number
}

export interface Start extends Started {
  /** Grows with every link that the sender starts, to any node. Of two links, the one with the higher number counts. */
  readonly generation: number
  /** Identifies the streams between two nodes until one gives the other up: 16 characters of `[0-9a-f]`. */
  readonly streamId: string
}

export function encodeStarted({ isResumed, received }: Started): Buffer {
  const body = Buffer.alloc(GENERATION_AT)
  body[0] = isResumed ? 1 : 0
  body.writeUIntLE(received, RECEIVED_AT, NUMBER_BYTES)
  return body
}

/** @throws {RangeError} when the body is too short. */
export function decodeStarted(body: Buffer): Started {
  return { isResumed: body[0] === 1, received: body.readUIntLE(RECEIVED_AT, NUMBER_BYTES) }
}

export function encodeStart(start: Start): Buffer {
  const rest = Buffer.alloc(NUMBER_BYTES + STREAM_ID_BYTES)
  rest.writeUIntLE(start.generation, 0, NUMBER_BYTES)
  rest.write(start.streamId, NUMBER_BYTES, 'hex')
  return Buffer.concat([encodeStarted(start), rest])
}

/** @throws {RangeError} when the body is too short. */
export function decodeStart(body: Buffer): Start {
  const generation = body.readUIntLE(GENERATION_AT, NUMBER_BYTES)
  return { ...decodeStarted(body), generation, streamId: body.toString('hex', STREAM_ID_AT) }
}

/** The body of an `ack`. */
export function encodeSequence(sequence: number): Buffer {
  const body = Buffer.allocUnsafe(NUMBER_BYTES)
  body.writeUIntLE(sequence, 0, NUMBER_BYTES)
  return body
}

/** @throws {RangeError} when the body is too short. */
export function decodeSequence(bytes: Buffer, start: number): number {
  return bytes.readUIntLE(start, NUMBER_BYTES)
}
