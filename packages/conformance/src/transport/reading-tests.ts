import { describe, expect, it } from 'vitest'
import type { TransportCapabilities } from 'webmq-server/ports'
import { itWhere } from '../applies.js'
import { eventually } from './eventually.js'
import { clientFrame, OPCODE } from './frames.js'
import { Harness, type TestedTransport } from './harness.js'

const text = (payload: string): Buffer => clientFrame(OPCODE.text, payload)
/** More than the sockets of a connection take. */
const FLOOD_MESSAGES = 100
const FLOOD_MESSAGE_BYTES = 100_000

/** Pausing a connection, and messages that are begun and never ended. */
export function readingTests(create: TestedTransport, expected: TransportCapabilities): void {
  describe('reading', () => {
    it('goes on sending to a connection that is told to pause', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connect()
      harness.transport.pause(connection)
      harness.transport.pause(connection)
      harness.transport.send(connection, 'down', false)
      await eventually(() => expect(client.messages).toEqual(['down']))
      harness.transport.resume(connection)
      harness.transport.resume(connection)
      client.send('up')
      await eventually(() => expect(harness.sink.textsOf(connection)).toEqual(['up']))
      client.destroy()
      await eventually(() => expect(harness.sink.closureOf(connection)).toBeDefined())
      harness.transport.pause(connection)
      harness.transport.resume(connection)
      await harness.expectToServe()
    })

    itWhere(!expected.pause)('reads on, without the capability', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connect()
      harness.transport.pause(connection)
      client.send('up')
      await eventually(() => expect(harness.sink.textsOf(connection)).toEqual(['up']))
    })

    itWhere(expected.pause)('leaves in the socket what a paused connection sends, and nothing of others', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connect()
      const other = await harness.connect()
      harness.transport.pause(connection)
      await harness.settle({ client, connection })
      const before = harness.transport.stats().receivedByteCount
      const payload = 'x'.repeat(FLOOD_MESSAGE_BYTES)
      for (let count = 0; count < FLOOD_MESSAGES; count++) client.send(payload)
      other.client.send('of another')
      await eventually(() => expect(harness.sink.textsOf(other.connection)).toEqual(['of another']))
      expect(harness.sink.textsOf(connection)).toEqual([])
      expect(harness.transport.stats().receivedByteCount - before).toBeLessThan(FLOOD_MESSAGE_BYTES)
      expect(client.socket.bufferedAmount).toBeGreaterThan(0)
      harness.transport.resume(connection)
      await eventually(() => expect(harness.sink.textsOf(connection)).toHaveLength(FLOOD_MESSAGES))
      expect(harness.sink.textsOf(connection)).toEqual(Array(FLOOD_MESSAGES).fill(payload))
    })

    itWhere(expected.pause)('pings a paused connection, and does not drop it though its pongs wait', async () => {
      const harness = await Harness.start(create, { pingIntervalMs: 60, pingTimeoutMs: 60 })
      const { client, connection } = await harness.connect()
      harness.transport.pause(connection)
      let pingCount = 0
      client.socket.on('ping', () => pingCount++)
      await eventually(() => expect(pingCount).toBeGreaterThanOrEqual(5))
      harness.transport.resume(connection)
      client.send('still here')
      await eventually(() => expect(harness.sink.textsOf(connection)).toEqual(['still here']))
    })

    itWhere(expected.pause)('notices after `resume` that a paused peer no longer answers', async () => {
      const harness = await Harness.start(create, { pingIntervalMs: 60, pingTimeoutMs: 60 })
      const { client, connection } = await harness.connectRaw()
      harness.transport.pause(connection)
      await eventually(() => expect(client.frames.length).toBeGreaterThanOrEqual(5))
      expect(harness.sink.isOpen(connection)).toBe(true)
      harness.transport.resume(connection)
      await eventually(() => expect(harness.sink.closureOf(connection)?.code).toBe(4003))
    })

    itWhere(expected.pause)('closes a paused connection with the close handshake', async () => {
      const harness = await Harness.start(create, { closeTimeoutMs: 30_000 })
      const { client, connection } = await harness.connect()
      harness.transport.pause(connection)
      client.send('not read')
      harness.transport.close(connection, 4001, 'enough')
      await expect(client.closed).resolves.toEqual({ code: 4001, reason: 'enough' })
      await eventually(() => expect(harness.sink.closureOf(connection)?.code).toBe(4001))
    })

    itWhere(expected.pause)('stops while connections are paused', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connect()
      harness.transport.pause(connection)
      await harness.transport.stop()
      await expect(client.closed).resolves.toMatchObject({ code: 1001 })
    })

    itWhere(expected.pause)('closes a connection with 4004 whose message does not end in time', async () => {
      const harness = await Harness.start(create, { messageTimeoutMs: 300 })
      const begun = await harness.connectRaw()
      const fragments = await harness.connectRaw()
      const talker = await harness.connectRaw()
      begun.client.write(text('a message').subarray(0, 10))
      fragments.client.write(clientFrame(OPCODE.text, '', { isFinal: false }))
      const drip = setInterval(() => {
        fragments.client.write(clientFrame(OPCODE.continuation, '', { isFinal: false }))
        talker.client.write(text('.'))
      }, 20)
      const { sink } = harness
      await eventually(() => {
        expect(sink.closureOf(begun.connection)).toMatchObject({ code: 4004, reason: 'E_MESSAGE_TIMEOUT' })
        expect(sink.closureOf(fragments.connection)).toMatchObject({ code: 4004, reason: 'E_MESSAGE_TIMEOUT' })
      }).finally(() => clearInterval(drip))
      // The sink may know before the peer has read it.
      await eventually(() => expect(begun.client.close?.code).toBe(4004))
      expect(sink.isOpen(talker.connection)).toBe(true)
      await eventually(() => expect(harness.transport.stats().partialBytes).toBe(0))
    })
  })
}
