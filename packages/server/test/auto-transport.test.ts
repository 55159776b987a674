import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WebSocketClient } from 'webmq-conformance'
import { makeCertificate } from 'webmq-services'
import { createServer } from '../src/create-server.js'
import type { ServerOptions } from '../src/doors/options/server-options.js'
import { recordingLogger } from './fake-server.js'

function create(options: ServerOptions = {}) {
  const { logger, lines } = recordingLogger()
  const server = createServer({ port: 0, logger, closeTimeoutMs: 500, ...options })
  onTestFinished(() => server.stop({ drainMs: 0 }))
  const line = () => lines.find(({ fields }) => 'transport' in fields)
  return { server, line }
}

describe('the default transport', () => {
  it('is the native engine where it loads, and the log and /health say so', async () => {
    const { server, line } = create()
    const { port } = await server.start()
    const choice = { name: 'native', chosen: 'auto' }
    expect(line()).toMatchObject({ fields: { transport: choice }, message: 'the native transport runs' })
    expect(await (await fetch(`http://127.0.0.1:${port}/health`)).json()).toMatchObject({ transport: choice })
  })

  it('is ws for the first attach to an https server, and the log says why', async () => {
    const { server, line } = create()
    const { cert, key } = await makeCertificate({ names: ['localhost'] })
    const httpsServer = createHttpsServer({ cert, key })
    await new Promise<void>((resolve) => httpsServer.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      httpsServer.closeAllConnections()
      httpsServer.close()
    })
    await server.attach(httpsServer)
    const transport = { name: 'ws', chosen: 'auto', reason: expect.stringContaining('https') }
    expect(line()).toMatchObject({ fields: { transport } })
    const { port } = httpsServer.address() as AddressInfo
    const client = await WebSocketClient.open(`wss://localhost:${port}/ws`, { ca: cert, subprotocols: ['webmq.v1'] })
    expect(server.stats().transport.connections).toBe(1)
    client.destroy()
  })

  it('says which option named it', async () => {
    const { server, line } = create({ transport: 'ws' })
    await server.start()
    expect(line()).toMatchObject({ fields: { transport: { name: 'ws', chosen: 'option' } } })
  })

  it('does not attach the native engine to an https server', async () => {
    const { server } = create({ transport: 'native' })
    const { cert, key } = await makeCertificate({ names: ['localhost'] })
    await expect(server.attach(createHttpsServer({ cert, key }))).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
    await server.attach(createHttpServer())
  })
})
