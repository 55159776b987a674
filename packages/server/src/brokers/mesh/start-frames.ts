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

/** The body of a `start` frame. */
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
