/** Opcodes of RFC 6455 §5.2. */
export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

/** One frame on the wire. */
export interface RawFrame {
  readonly isFinal: boolean
  /** RSV1, which marks a compressed message (RFC 7692 §6). */
  readonly isDeflated: boolean
  readonly opcode: number
  readonly payload: Buffer
}

/** Deviations of a frame from a complete, valid client frame. */
export interface FrameFaults {
  readonly isFinal?: boolean
  readonly isMasked?: boolean
  /** RSV1-3 as the bits 4, 2 and 1. */
  readonly reservedBits?: number
  /** Announced instead of the true length. */
  readonly announcedBytes?: number
}

const MASK = Buffer.from([0x12, 0x34, 0x56, 0x78])

/** A client frame with the requested faults. */
export function clientFrame(opcode: number, payload: Uint8Array | string = '', faults: FrameFaults = {}): Buffer {
  const { isFinal = true, isMasked = true, reservedBits = 0 } = faults
  const body = Buffer.from(payload)
  const header = frameHeader(faults.announcedBytes ?? body.length)
  header[0] = (isFinal ? 0x80 : 0) | (reservedBits << 4) | opcode
  if (!isMasked) return Buffer.concat([header, body])
  header[1] = (header[1] ?? 0) | 0x80
  return Buffer.concat([header, MASK, body.map((byte, index) => byte ^ (MASK[index % 4] ?? 0))])
}

/** A close frame of a client; a bare number may also be an invalid code. */
export function closeFrame(code: number, reason = ''): Buffer {
  return clientFrame(OPCODE.close, Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(reason)]))
}

/** Code and reason of a close frame's payload. */
export function readClose(payload: Buffer): { code: number; reason: string } {
  return payload.length < 2
    ? { code: 1005, reason: '' }
    : { code: payload.readUInt16BE(0), reason: payload.subarray(2).toString() }
}

/** Takes the complete frames of a server from the front of `bytes`; returns them and the rest. */
export function takeFrames(bytes: Buffer): { frames: RawFrame[]; rest: Buffer } {
  const frames: RawFrame[] = []
  let rest = bytes
  for (;;) {
    const header = readHeader(rest)
    if (header === undefined || rest.length < header.endsAt) return { frames, rest }
    const { isFinal, isDeflated, opcode, startsAt, endsAt } = header
    frames.push({ isFinal, isDeflated, opcode, payload: rest.subarray(startsAt, endsAt) })
    rest = rest.subarray(endsAt)
  }
}

function readHeader(bytes: Buffer) {
  const [first, second] = bytes
  if (first === undefined || second === undefined) return undefined
  if (second & 0x80) throw new Error('RFC 6455 §5.1: a server masks no frame')
  const lengthBytes = second === 127 ? 8 : second === 126 ? 2 : 0
  const startsAt = 2 + lengthBytes
  if (bytes.length < startsAt) return undefined
  const length =
    lengthBytes === 8 ? Number(bytes.readBigUInt64BE(2)) : lengthBytes === 2 ? bytes.readUInt16BE(2) : second
  const [isFinal, isDeflated] = [(first & 0x80) !== 0, (first & 0x40) !== 0]
  return { isFinal, isDeflated, opcode: first & 0x0f, startsAt, endsAt: startsAt + length }
}

function frameHeader(payloadBytes: number): Buffer {
  if (payloadBytes < 126) return Buffer.from([0, payloadBytes])
  const header = Buffer.alloc(payloadBytes < 65_536 ? 4 : 10)
  header[1] = payloadBytes < 65_536 ? 126 : 127
  if (payloadBytes < 65_536) header.writeUInt16BE(payloadBytes, 2)
  else header.writeBigUInt64BE(BigInt(payloadBytes), 2)
  return header
}
