import { describe, expect, it } from 'vitest'
import { eventually } from './eventually.js'
import { clientFrame, OPCODE } from './frames.js'
import { Harness, type TestedTransport } from './harness.js'

const MEBIBYTE = 1024 * 1024

/** Peers that read late, and what they cost. */
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
  })
}
