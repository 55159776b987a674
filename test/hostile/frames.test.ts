import { describe, expect, it } from 'vitest'
import { FrameReader, frameOf, OPCODE, type ServerFrame } from './frames.js'

/** The frames in these bytes, read in parts of this size. */
function framesIn(bytes: Buffer, partBytes: number): ServerFrame[] {
  const frames: ServerFrame[] = []
  const reader = new FrameReader((frame) => frames.push(frame))
  for (let offset = 0; offset < bytes.length; offset += partBytes) {
    reader.read(bytes.subarray(offset, offset + partBytes))
  }
  return frames
}

describe('frames of hostile clients', () => {
  it.each([
    [0, 2],
    [125, 2],
    [126, 4],
    [65_535, 4],
    [65_536, 10],
  ])('gives a payload of %d bytes a header of %d', (bytes, headerBytes) => {
    const frame = frameOf(Buffer.alloc(bytes), { isMasked: false })
    expect(frame.length).toBe(headerBytes + bytes)
  })

  it('masks the payload so that the mask restores it', () => {
    const frame = frameOf('ping')
    expect([frame[0], frame[1]]).toEqual([0x81, 0x84])
    const mask = frame.subarray(2, 6)
    expect(Buffer.from(frame.subarray(6).map((byte, place) => byte ^ (mask[place & 3] ?? 0))).toString()).toBe('ping')
  })

  it('makes frames that lie about everything', () => {
    const shape = { opcode: 11, isFinal: false, reserved: 4, isMasked: false, announcedBytes: 0xffff_ffff_ffff_ffffn }
    expect(frameOf('', shape).toString('hex')).toBe('4b7fffffffffffffffff')
  })

  it.each([1, 3, 7, 1_000_000])('reads frames of a server that come in parts of %d bytes', (partBytes) => {
    const sent = [
      frameOf('pong', { isMasked: false }),
      frameOf('', { isMasked: false, opcode: OPCODE.ping }),
      frameOf('x'.repeat(300), { isMasked: false, reserved: 4 }),
      frameOf('y'.repeat(70_000), { isMasked: false, opcode: OPCODE.binary }),
      frameOf(Buffer.from([0x0f, 0xa1]), { isMasked: false, opcode: OPCODE.close }),
    ]
    const frames = framesIn(Buffer.concat(sent), partBytes)
    expect(frames.map(({ opcode, payloadBytes, isCompressed }) => [opcode, payloadBytes, isCompressed])).toEqual([
      [OPCODE.text, 4, false],
      [OPCODE.ping, 0, false],
      [OPCODE.text, 300, true],
      [OPCODE.binary, 70_000, false],
      [OPCODE.close, 2, false],
    ])
    expect(frames[0]?.head.toString()).toBe('pong')
    expect(frames[3]?.head.toString().startsWith('yyy')).toBe(true)
    expect(frames[4]?.head.readUInt16BE(0)).toBe(4001)
  })
})
