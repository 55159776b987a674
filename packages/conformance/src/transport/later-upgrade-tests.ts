import { createServer, type IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { eventually } from './eventually.js'
import { clientFrame, OPCODE } from './frames.js'
import { Harness, type TestedTransport } from './harness.js'
import { handshakeHead, type RawClient } from './raw-client.js'

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = ''
  for await (const chunk of request) body += chunk
  return body
}

/** Sends a request on a connection that stays open, and reads the answer. */
async function ask(client: RawClient, head: string, body = ''): Promise<string> {
  client.writeNext(`${head}\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  const { status, headers } = await client.response()
  expect(status).toBe(200)
  await eventually(() => expect(client.body.length).toBe(Number(headers.get('content-length'))))
  return client.body
}

/**
 * Upgrades on a connection that has carried other requests: proxies keep connections to their servers, and send the requests of all
 * clients through them.
 * @param isUsable Whether such an upgrade is taken; else it is refused with 503.
 */
export function laterUpgradeTests(create: TestedTransport, isUsable: boolean): void {
  const start = () => {
    const httpServer = createServer(async (request, response) => {
      const body = `${request.method} ${request.url} ${await bodyOf(request)}`
      response.writeHead(200, { 'content-length': body.length }).end(body)
    })
    return Harness.start(create, { httpServer })
  }

  describe('later upgrades', () => {
    it.each([1, 3])(
      `are ${isUsable ? 'taken' : 'refused with 503'} after requests on their connection: %s`,
      async (count) => {
        const harness = await start()
        const client = await harness.connectSocket()
        for (let index = 0; index < count; index++)
          expect(await ask(client, `POST /${index} HTTP/1.1`, 'abc')).toContain('abc')
        client.writeNext(handshakeHead('/later'))
        if (!isUsable) {
          const { status, headers } = await client.response()
          expect([status, headers.get('connection')]).toEqual([503, 'close'])
          await client.ended()
          expect(harness.sink.upgrades).toEqual([])
          await harness.expectToServe()
          return
        }
        expect((await client.response()).status).toBe(101)
        const connection = await harness.connectionAt('/later')
        client.write(clientFrame(OPCODE.text, 'there'))
        await eventually(() => expect(harness.sink.textsOf(connection)).toEqual(['there']))
        harness.transport.send(connection, 'back', false)
        await eventually(() => expect(client.texts).toEqual(['back']))
        expect(harness.sink.upgrades.map(({ remoteAddress }) => remoteAddress)).toEqual(['127.0.0.1'])
        harness.transport.close(connection, 4000, 'enough')
        await eventually(() => expect(client.close).toEqual({ code: 4000, reason: 'enough' }))
      },
    )

    it('that the sink rejects end with their answer', async () => {
      const httpServer = createServer((_request, response) => response.end('http'))
      const harness = await Harness.start(create, { httpServer }, (transport) => ({
        upgrade: ({ id }) => transport.reject(id, { status: isUsable ? 403 : 503 }),
      }))
      const client = await harness.connectSocket()
      await ask(client, 'GET / HTTP/1.1')
      client.writeNext(handshakeHead('/later'))
      expect((await client.response()).status).toBe(isUsable ? 403 : 503)
      await client.ended()
    })

    it('to another protocol are requests, body and all', async () => {
      const harness = await start()
      const client = await harness.connectSocket()
      const offer = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__'
      for (let index = 0; index < 12; index++)
        expect(await ask(client, `POST /${index} HTTP/1.1\r\n${offer}`, 'abc')).toBe(`POST /${index} abc`)
      client.writeNext(handshakeHead('/later'))
      expect((await client.response()).status).toBe(isUsable ? 101 : 503)
    })
  })
}
