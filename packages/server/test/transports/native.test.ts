import { createServer, type RequestListener, type Server } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import fastify from 'fastify'
import { describe, expect, it, onTestFinished } from 'vitest'
import { DEFAULT_OPTIONS, eventually, RecordingSink, transportSuite, WebSocketClient } from 'webmq-conformance'
import { makeCertificate } from 'webmq-services'
import { createNativeTransport } from '../../src/adapters/transports/native/transport.js'
import { capabilities } from './native-capabilities.js'

/** Express brings no types of its own. */
const createExpress: () => ExpressApp = createRequire(import.meta.url)('express')

interface ExpressApp extends RequestListener {
  get(path: string, handler: (request: unknown, response: { send(body: string): void }) => void): void
}

transportSuite('native', createNativeTransport, {
  capabilities,
  makeCertificate,
  traits: { takesLaterUpgradesOverTls: false },
})

describe('native transport inside a framework', () => {
  /** Mounts the transport in a server, and holds that both answer on its one port. */
  async function expectBothToAnswer(server: Server): Promise<void> {
    const transport = createNativeTransport(DEFAULT_OPTIONS)
    onTestFinished(() => transport.stop())
    const sink = new RecordingSink({
      upgrade: ({ id }) => transport.accept(id),
      message: (connection, data, isBinary) => transport.send(connection, data, isBinary),
    })
    transport.attach(server, sink)
    const { port } = server.address() as AddressInfo
    const client = await WebSocketClient.open(`ws://127.0.0.1:${port}/ws`)
    onTestFinished(() => client.destroy())
    client.send('hello')
    await eventually(() => expect(client.messages).toEqual(['hello']))
    const response = await fetch(`http://127.0.0.1:${port}/route`)
    expect(await response.text()).toBe('from the framework')
    client.send('still there')
    await eventually(() => expect(client.messages).toEqual(['hello', 'still there']))
  }

  it('takes upgrades beside Express', async () => {
    const app = createExpress()
    app.get('/route', (_request, response) => response.send('from the framework'))
    const server = createServer(app)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    await expectBothToAnswer(server)
  })

  it('takes upgrades beside Fastify', async () => {
    const app = fastify({ forceCloseConnections: true })
    app.get('/route', () => 'from the framework')
    await app.listen({ port: 0, host: '127.0.0.1' })
    onTestFinished(() => app.close())
    await expectBothToAnswer(app.server)
  })
})
