import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type TransportCapabilities, UNIX_PEER } from 'webmq-server/ports'
import { itWhere } from '../applies.js'
import { eventually } from './eventually.js'
import { DEFAULT_OPTIONS, group, Harness, type TestedTransport } from './harness.js'
import { RecordingSink } from './recording-sink.js'

/** A path of a socket that is not there, in a folder that goes with the test. */
function freePath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'webmq-socket-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return join(folder, 'webmq.sock')
}

/** A Unix socket in place of an address. */
export function unixSocketTests(create: TestedTransport, { sse }: TransportCapabilities): void {
  const isSecure = create.certificates !== undefined

  describe('a Unix socket', () => {
    // `ws` has no address for it over TLS.
    itWhere(!isSecure)('is listened on, and its connections have no address', async () => {
      const path = freePath()
      const harness = await Harness.start(create, { host: `unix:${path}` })
      expect(harness.address).toEqual({ host: `unix:${path}`, port: 0 })
      const { client, connection } = await harness.connect()
      expect(harness.sink.upgrades).toMatchObject([{ remoteAddress: UNIX_PEER, remotePort: 0 }])
      client.send('up')
      await eventually(() => expect(harness.sink.textsOf(connection)).toEqual(['up']))
      harness.transport.join(connection, group(1))
      harness.transport.multicast([group(1)], 'x'.repeat(DEFAULT_OPTIONS.maxOutboxBytes / 2), false)
      harness.transport.send(connection, 'down', false)
      await eventually(() => expect(client.messages.at(-1)).toBe('down'))
      await harness.transport.stopAccepting()
      await expect(harness.connect()).rejects.toThrow()
      client.send('still there')
      await eventually(() => expect(harness.sink.textsOf(connection)).toEqual(['up', 'still there']))
    })

    it('serves plain HTTP, whose connections have no address either', async () => {
      const path = freePath()
      const httpServer = createServer(({ socket }, response) => {
        response.end(`${socket.remoteAddress} ${'encrypted' in socket && socket.encrypted === true}`)
      })
      const harness = await Harness.start(create, { host: `unix:${path}`, httpServer })
      const client = harness.track(harness.requestStream('/health', { socketPath: path }))
      await eventually(() => expect(client.body).toBe(`${UNIX_PEER} ${isSecure}`))
    })

    itWhere(sse)('serves event streams', async () => {
      const path = freePath()
      const harness = await Harness.start(create, { host: `unix:${path}`, ssePath: '/sse', pingIntervalMs: 50 })
      const client = harness.track(harness.requestStream('/sse', { socketPath: path }))
      const connection = await harness.connectionAt('/sse')
      expect(harness.sink.upgrades).toMatchObject([{ kind: 'sse', remoteAddress: UNIX_PEER }])
      harness.transport.send(connection, 'data: a\n\n', false)
      await eventually(() => expect(client.events).toBe('data: a\n\n'))
      await eventually(() => expect(client.body).toContain(':\n\n'))
    })

    it('is refused with E_ADDRESS_IN_USE where a file is', async () => {
      const path = freePath()
      writeFileSync(path, '')
      const transport = create({ ...DEFAULT_OPTIONS, host: `unix:${path}`, ...tlsOf(create) })
      onTestFinished(() => transport.stop())
      const start = transport.start(new RecordingSink())
      await expect(start).rejects.toMatchObject({ code: 'E_ADDRESS_IN_USE', message: expect.stringContaining(path) })
    })

    it('is refused with E_ADDRESS_UNAVAILABLE where no folder is', async () => {
      const path = join(freePath(), 'webmq.sock')
      const transport = create({ ...DEFAULT_OPTIONS, host: `unix:${path}`, ...tlsOf(create) })
      onTestFinished(() => transport.stop())
      const start = transport.start(new RecordingSink())
      await expect(start).rejects.toMatchObject({ code: 'E_ADDRESS_UNAVAILABLE' })
    })
  })
}

function tlsOf({ certificates }: TestedTransport) {
  return certificates === undefined ? undefined : { tls: certificates() }
}
