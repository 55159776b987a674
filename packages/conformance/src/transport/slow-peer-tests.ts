import { describe, expect, it } from 'vitest'
import { eventually } from './eventually.js'
import { clientFrame, OPCODE } from './frames.js'
import { Harness, type TestedTransport } from './harness.js'

const MEBIBYTE = 1024 * 1024

/** Peers that read late: what they cost, and when they count as gone. */
export function slowPeerTests(create: TestedTransport): void {
  describe('slow peers', () => {
    it('are closed when they ping and do not read the pongs', { timeout: 60_000 }, async () => {
      const harness = await Harness.start(create, { maxOutboxBytes: 64 * 1024, closeTimeoutMs: 500 })
      const { client, connection } = await harness.connectRaw()
      client.socket.pause()
      const pings = Buffer.concat(Array.from({ length: 2_000 }, () => clientFrame(OPCODE.ping, 'x'.repeat(125))))
      // The kernels of both sides take some megabytes before the outbox fills.
      for (let bytes = 0; bytes < 64 * MEBIBYTE; bytes += pings.length) {
        if (harness.sink.closureOf(connection) !== undefined) break
        client.write(pings)
        await new Promise((resolve) => setImmediate(resolve))
      }
      // A library may count pongs, and end the connection without a close frame.
      await eventually(() => expect(harness.sink.closureOf(connection)?.code).toBeOneOf([4008, 1006]))
      await harness.expectToServe()
    })

    it('are kept while they read and answer, though a ping waits behind more than they read in its time', {
      timeout: 90_000,
    }, async () => {
      const harness = await Harness.start(create, {
        pingIntervalMs: 200,
        pingTimeoutMs: 3_000,
        maxOutboxBytes: 64 * MEBIBYTE,
      })
      const { client, connection } = await harness.connectRaw()
      // 10 MB a second, so that what the kernels hold takes less than the time, also on a slow machine, and all of it more.
      let allowedBytes = 0
      let readBytes = 0
      client.socket.on('data', (chunk) => {
        readBytes += chunk.length
        if (readBytes >= allowedBytes) client.socket.pause()
      })
      let answeredCount = 0
      const reading = setInterval(() => {
        const pings = client.frames.filter(({ opcode }) => opcode === OPCODE.ping)
        for (const { payload } of pings.slice(answeredCount)) client.write(clientFrame(OPCODE.pong, payload))
        answeredCount = pings.length
        allowedBytes = Math.min(allowedBytes, readBytes) + 500_000
        client.socket.resume()
      }, 50)
      const payload = 'x'.repeat(64 * 1024)
      const count = 640
      for (let index = 0; index < count; index++) harness.transport.send(connection, payload, false)
      await eventually(() => expect(client.texts.length).toBe(count), 60_000).finally(() => clearInterval(reading))
      expect(harness.sink.closureOf(connection)).toBeUndefined()
    })

    it('are dropped with 4003 when they read nothing', async () => {
      const options = { pingIntervalMs: 100, pingTimeoutMs: 400, closeTimeoutMs: 200, maxOutboxBytes: 64 * MEBIBYTE }
      const harness = await Harness.start(create, options)
      const { client, connection } = await harness.connectRaw()
      client.socket.pause()
      harness.transport.send(connection, Buffer.alloc(16 * MEBIBYTE), true)
      await eventually(() => expect(harness.sink.closureOf(connection)?.code).toBe(4003))
    })
  })
}
