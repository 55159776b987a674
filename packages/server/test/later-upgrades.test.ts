import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { eventually, handshakeHead, RawClient } from 'webmq-conformance'
import { createServer, type ServerOptions } from '../src/index.js'
import { recordingLogger } from './fake-server.js'

const HANDSHAKE = handshakeHead('/ws', { 'Sec-WebSocket-Protocol': 'webmq.v1' })
const PROBE = 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n'
async function start(options: ServerOptions) {
  const { logger } = recordingLogger()
  const server = createServer({ port: 0, logger, ...options })
  const { port } = await server.start()
  onTestFinished(() => server.stop({ drainMs: 0 }))
  const client = await RawClient.connect(port)
  onTestFinished(() => client.destroy())
  const ask = async (request: string) => {
    client.writeNext(request)
    const { status } = await client.response()
    await eventually(() => expect(client.body).toMatch(/\}\s*$/))
    return status
  }
  return { server, client, ask }
}

describe.each(['native', 'ws', 'uws'] as const)('a connection that has carried requests (%s)', (transport) => {
  it.each([
    ['a probe', PROBE],
    ['a request that offers h2c', PROBE.replace('\r\n\r\n', '\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n')],
  ])('becomes a WebSocket: %s', async (_title, request) => {
    const { server, client, ask } = await start({ transport, httpKeepAliveMs: 1_000 })
    for (let count = 0; count < 3; count++) expect(await ask(request)).toBeLessThan(300)
    client.writeNext(HANDSHAKE)
    expect((await client.response()).status).toBe(101)
    await eventually(() => expect(client.texts[0]).toMatch(/^welcome/))
    // No limit of plain HTTP holds for it any more.
    await eventually(() => expect(server.stats()).toMatchObject({ connectionCount: 1, http: { connectionCount: 0 } }))
    await sleep(2_500)
    expect([client.isEnded, server.stats().connectionCount]).toEqual([false, 1])
  })

  // uws parses each request by itself, and answers them in order.
  it.skipIf(transport === 'uws')('is ended by an upgrade while answers are due, which would mix with it', async () => {
    const { server, client } = await start({ transport })
    client.write(PROBE + HANDSHAKE)
    await client.ended()
    expect(client.texts).toEqual([])
    expect(server.stats()).toMatchObject({ connectionCount: 0, http: { droppedCounts: { pipelining: 1 } } })
  })
})
