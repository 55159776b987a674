import { describe, expect, it } from 'vitest'
import { itWhere } from '../applies.js'
import { eventually } from './eventually.js'
import { clientFrame, closeFrame, OPCODE } from './frames.js'
import { Harness, type TestedTransport } from './harness.js'
import type { TransportTraits } from './traits.js'

/** RFC 6455 §5.5: a control frame carries at most 125 bytes, two of which are the code. */
const LONGEST_REASON = 'r'.repeat(123)

/** How connections end. */
export function closingTests(create: TestedTransport, traits: TransportTraits): void {
  describe('closing', () => {
    it.each([
      [1000, ''],
      [1001, 'page left'],
      [4000, 'grün'],
      [4999, LONGEST_REASON],
    ])(
      'tells the code %i and the reason %j that the peer closed with, and answers with the code',
      async (code, reason) => {
        const harness = await Harness.start(create)
        const { client, connection } = await harness.connect()
        client.close(code, reason)
        await expect(client.closed).resolves.toMatchObject({ code })
        await eventually(() => expect(harness.sink.closures).toEqual([{ connection, code, reason }]))
      },
    )

    it.each([3000, 3999])('tells the registered code %i that the peer closed with', async (code) => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connect()
      client.close(code)
      const told = traits.knowsEveryCloseCode ? code : 1006
      await eventually(() => expect(harness.sink.closures).toEqual([{ connection, code: told, reason: '' }]))
    })

    it('tells 1005 when the close frame has no code', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connect()
      client.close()
      await eventually(() => expect(harness.sink.closures).toEqual([{ connection, code: 1005, reason: '' }]))
      await expect(client.closed).resolves.toMatchObject({ code: 1005 })
    })

    it('tells 1006 when the peer vanishes', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connect()
      client.destroy()
      await eventually(() => expect(harness.sink.closures).toEqual([{ connection, code: 1006, reason: '' }]))
    })

    it('tells 1006 when the peer ends its side of the TCP connection', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connectRaw()
      client.socket.end()
      await eventually(() => expect(harness.sink.closureOf(connection)?.code).toBe(1006))
      await client.ended()
    })

    it.each([
      [1000, 'done'],
      [1013, ''],
      [4001, 'draining'],
      [4500, LONGEST_REASON],
    ])('closes with the code %i and the reason %j that it is told', async (code, reason) => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connect()
      harness.sink.calling(() => harness.transport.close(connection, code, reason))
      await expect(client.closed).resolves.toEqual({ code, reason })
      await eventually(() => expect(harness.sink.closureOf(connection)?.code).toBe(code))
    })

    it('sends what is queued before the close frame, and nothing after it', async () => {
      const harness = await Harness.start(create, { maxOutboxBytes: 16 * 1024 * 1024 })
      const { client, connection } = await harness.connect()
      const texts = Array.from({ length: 2_000 }, (_, index) => `${index} ${'x'.repeat(1_000)}`)
      for (const text of texts) harness.transport.send(connection, text, false)
      harness.transport.close(connection, 4001, 'last')
      harness.transport.send(connection, 'too late', false)
      await expect(client.closed).resolves.toEqual({ code: 4001, reason: 'last' })
      expect(client.messages).toEqual(texts)
    })

    it('closes once, however often it is told', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connect()
      harness.transport.close(connection, 4001, 'first')
      harness.transport.close(connection, 4002, 'second')
      await expect(client.closed).resolves.toEqual({ code: 4001, reason: 'first' })
      harness.transport.close(connection, 4003, 'third')
      await harness.expectToServe()
      expect(harness.sink.closures.filter((closure) => closure.connection === connection)).toHaveLength(1)
    })

    it('closes from inside `message`, without another event from inside the call', async () => {
      const harness = await Harness.start(create, {}, (transport) => ({
        message: (connection) => harness.sink.calling(() => transport.close(connection, 4000, 'as asked')),
      }))
      const { client } = await harness.connect()
      client.send('close me')
      await expect(client.closed).resolves.toEqual({ code: 4000, reason: 'as asked' })
    })

    it('tells of no message that comes after the close frame of the peer', async () => {
      const harness = await Harness.start(create)
      const { client, connection } = await harness.connectRaw()
      client.write(Buffer.concat([clientFrame(OPCODE.text, 'a'), closeFrame(1000), clientFrame(OPCODE.text, 'b')]))
      await eventually(() => expect(harness.sink.closureOf(connection)?.code).toBe(1000))
      expect(harness.sink.textsOf(connection)).toEqual(['a'])
      await client.ended()
      expect(client.close?.code).toBe(1000)
    })

    it('ends the connection of a peer that never answers the close frame', async () => {
      const harness = await Harness.start(create, { closeTimeoutMs: 300 })
      const { client, connection } = await harness.connectRaw()
      harness.transport.close(connection, 4001, '')
      await client.ended()
      expect(client.close?.code).toBe(4001)
      await eventually(() => expect(harness.sink.closureOf(connection)).toBeDefined())
    })

    itWhere(traits.closeHandshake)('waits for the close frame of the peer before it tells of the end', async () => {
      const harness = await Harness.start(create, { closeTimeoutMs: 60_000 })
      const { client, connection } = await harness.connectRaw()
      harness.transport.close(connection, 4001, '')
      await eventually(() => expect(client.close?.code).toBe(4001))
      await harness.expectToServe()
      expect(harness.sink.closureOf(connection)).toBeUndefined()
      client.write(closeFrame(4001))
      await eventually(() => expect(harness.sink.closureOf(connection)?.code).toBe(4001))
      await client.ended()
    })

    itWhere(!traits.closeHandshake)('tells of the end when its own close frame is queued', async () => {
      const harness = await Harness.start(create, { closeTimeoutMs: 60_000 })
      const { connection } = await harness.connectRaw()
      harness.transport.close(connection, 4001, 'why')
      await eventually(() => expect(harness.sink.closures).toEqual([{ connection, code: 4001, reason: 'why' }]))
    })

    it.each(['open', 'message'] as const)(
      'closes with 4011 and tells `failed` when the sink throws in `%s`',
      async (event) => {
        const bug = () => {
          throw new Error('a bug')
        }
        const harness = await Harness.start(create, {}, () => {
          // The first connection meets the bug, the next one does not.
          let isFixed = false
          return {
            [event]: () => {
              if (isFixed) return
              isFixed = true
              bug()
            },
          }
        })
        const { client } = await harness.connect()
        client.send('hello')
        await expect(client.closed).resolves.toMatchObject({ code: 4011 })
        await eventually(() => expect(harness.sink.failures).toHaveLength(1))
        expect(harness.sink.failures[0]?.cause ?? harness.sink.failures[0]).toMatchObject({ message: 'a bug' })
        await harness.expectToServe()
      },
    )

    it('tells `failed` when the sink throws in `closed`', async () => {
      const harness = await Harness.start(create, {}, () => ({
        closed: (_connection, code) => {
          if (code === 4000) throw new Error('a bug')
        },
      }))
      const { client } = await harness.connect()
      client.close(4000)
      await eventually(() => expect(harness.sink.failures).toHaveLength(1))
      await harness.expectToServe()
    })
  })
}
