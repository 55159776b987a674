import { constants, deflateRawSync } from 'node:zlib'
import type { AttackCase } from '../attack-case.js'
import { type FrameShape, OPCODE } from '../frames.js'

const MAX_PAYLOAD_BYTES = 262_144
const HELD_MESSAGES = 20
/** Less than a message may have, so that the server has to wait for the rest. */
const HELD_BYTES = 200_000
const HELD_STEP_MS = 1_000
const UNCLOSED_CONNECTIONS = 20
const BOMB_BYTES = 64 * 1_024 * 1_024
const EMPTY = Buffer.alloc(0)
/** RSV1: the payload is deflated. */
const COMPRESSED = 4

/** Each of them ends the connection. */
const BROKEN: readonly (readonly [payload: Buffer, shape: FrameShape])[] = [
  [Buffer.from('ping'), { isMasked: false }],
  [Buffer.from('ping'), { reserved: 4 }],
  [Buffer.from('ping'), { reserved: 3 }],
  [Buffer.from('ping'), { opcode: 3 }],
  [Buffer.from('ping'), { opcode: 11 }],
  [Buffer.alloc(126), { opcode: OPCODE.ping }],
  [EMPTY, { opcode: OPCODE.ping, isFinal: false }],
  [EMPTY, { opcode: OPCODE.continuation }],
  [Buffer.from([3]), { opcode: OPCODE.close }],
  [Buffer.from([0x03, 0xee]), { opcode: OPCODE.close }],
  // Text that is not UTF-8: an overlong slash, and bytes that never occur.
  [Buffer.from('publish - evil.\xff\xfe\n\xc0\xaf', 'latin1'), {}],
  [EMPTY, { announcedBytes: 0x7fff_ffff_ffff_ffffn }],
  [EMPTY, { announcedBytes: 0xffff_ffff_ffff_ffffn }],
  [EMPTY, { announcedBytes: 1_073_741_824 }],
]

/** Frames of RFC 6455 and 7692, allowed and not. */
export const frameCases: readonly AttackCase[] = [
  {
    name: 'tiny-fragments',
    does: 'sends one message as fragments of one byte, without end',
    fills: ['message'],
    attack: async (client) =>
      await client.repeat(async () => {
        const connection = await client.open()
        await client.sendFrame(connection, 'publish - evil.fragments\n', { isFinal: false })
        const fragment = { opcode: OPCODE.continuation, isFinal: false }
        while (!connection.hasEnded) await client.sendFrame(connection, 'x', fragment)
      }),
  },
  {
    name: 'empty-fragments',
    does: 'sends one message as empty fragments, without end',
    fills: ['message'],
    attack: async (client) =>
      await client.repeat(async () => {
        const connection = await client.open()
        await client.sendFrame(connection, EMPTY, { isFinal: false })
        const fragment = { opcode: OPCODE.continuation, isFinal: false }
        while (!connection.hasEnded) await client.sendFrame(connection, EMPTY, fragment)
      }),
  },
  {
    name: 'held-messages',
    does: 'holds 20 messages of 256 KiB that lack their end, with a byte per second',
    fills: ['message'],
    connections: HELD_MESSAGES,
    attack: async (client) =>
      await client.hold(HELD_MESSAGES, async () => {
        const connection = await client.open()
        const shape = { opcode: OPCODE.binary, announcedBytes: MAX_PAYLOAD_BYTES }
        await client.sendFrame(connection, Buffer.alloc(HELD_BYTES), shape)
        while (!connection.hasEnded) {
          await client.sleep(HELD_STEP_MS)
          await connection.sendBytes(Buffer.from('x'))
        }
      }),
  },
  {
    name: 'ping-flood',
    does: 'sends WebSocket pings of 125 bytes and never reads a pong',
    fills: ['outbox'],
    attack: async (client) =>
      await client.repeat(async () => {
        const connection = await client.open()
        connection.pause()
        const payload = Buffer.alloc(125)
        while (!connection.hasEnded) await client.sendFrame(connection, payload, { opcode: OPCODE.ping })
      }),
  },
  {
    name: 'broken-frames',
    does: 'sends a frame that RFC 6455 forbids, or text that is not UTF-8, and comes back',
    fills: [],
    attack: async (client) => {
      let place = client.index
      await client.repeat(async () => {
        const connection = await client.open()
        const [payload = EMPTY, shape = {}] = BROKEN[place++ % BROKEN.length] ?? []
        await client.sendFrame(connection, payload, shape)
        await Promise.race([connection.ended, client.sleep(1_000)])
        connection.destroy()
      })
    },
  },
  {
    name: 'oversized-messages',
    does: 'sends messages above the limit of the server and comes back',
    fills: ['message'],
    attack: async (client) => {
      const message = Buffer.alloc(MAX_PAYLOAD_BYTES * 2, 'x')
      await client.repeat(async () => {
        const connection = await client.open()
        await client.sendFrame(connection, message, {})
        await connection.ended
      })
    },
  },
  {
    name: 'compression-bomb',
    does: 'sends 64 KiB that inflate to 64 MiB and comes back',
    fills: ['message'],
    needs: 'compression',
    attack: async (client) => {
      const bomb = deflated(Buffer.alloc(BOMB_BYTES))
      await client.repeat(async () => {
        const connection = await client.open({ isCompressed: true })
        await client.sendFrame(connection, bomb, { reserved: COMPRESSED })
        await connection.ended
      })
    },
  },
  {
    name: 'compressed-publishes',
    does: 'publishes messages of 300 bytes that inflate to the largest payload',
    fills: ['inbox', 'message', 'log'],
    needs: 'compression',
    attack: async (client) => {
      const message = deflated(Buffer.from(`publish - evil.zeros\n${'0'.repeat(MAX_PAYLOAD_BYTES)}`))
      await client.repeat(async () => {
        const connection = await client.open({ isCompressed: true })
        while (!connection.hasEnded) await client.sendFrame(connection, message, { reserved: COMPRESSED })
      })
    },
  },
  {
    name: 'compressed-fragments',
    does: 'sends a compressed message as fragments of one byte, without end',
    fills: ['message'],
    needs: 'compression',
    attack: async (client) =>
      await client.repeat(async () => {
        const connection = await client.open({ isCompressed: true })
        await client.sendFrame(connection, EMPTY, { isFinal: false, reserved: COMPRESSED })
        const fragment = { opcode: OPCODE.continuation, isFinal: false }
        // A stored block of deflate without content, byte by byte: it inflates to nothing.
        const block = [0, 0, 0, 0xff, 0xff].map((byte) => Buffer.from([byte]))
        for (let place = 0; !connection.hasEnded; place++) {
          await client.sendFrame(connection, block[place % block.length] ?? EMPTY, fragment)
        }
      }),
  },
  {
    name: 'never-closing',
    does: 'makes the server close 20 connections and ignores the close frame',
    fills: [],
    connections: UNCLOSED_CONNECTIONS,
    attack: async (client) =>
      await client.hold(UNCLOSED_CONNECTIONS, async () => {
        const connection = await client.open({ isMute: true })
        await client.sendFrame(connection, EMPTY, { opcode: 3 })
        await connection.ended
      }),
  },
]

/** Without the last four bytes, as RFC 7692 §7.2.1 wants it. */
function deflated(content: Buffer): Buffer {
  return deflateRawSync(content, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4)
}
