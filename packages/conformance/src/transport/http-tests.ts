import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  Agent,
  createServer,
  type IncomingMessage,
  type RequestListener,
  type RequestOptions,
  request,
} from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { eventually } from './eventually.js'
import { type CreateTransport, Harness } from './harness.js'
import { patternBytes } from './pattern-bytes.js'
import type { TransportTraits } from './traits.js'

const LARGE_BYTES = 5 * 1024 * 1024

interface Answer {
  readonly response: IncomingMessage
  readonly body: Buffer
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

async function fetchFrom(port: number, options: RequestOptions = {}, body?: Uint8Array | string): Promise<Answer> {
  const outgoing = request({ host: '127.0.0.1', port, agent: false, ...options })
  outgoing.end(body)
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  return { response, body: await bodyOf(response) }
}

/** Plain HTTP on the transport's port. */
export function httpTests(create: CreateTransport, traits: TransportTraits): void {
  const start = (listener: RequestListener) => Harness.start(create, { httpServer: createServer(listener) })

  describe('http', () => {
    it('hands a request to the http server, and its response back, headers and all', async () => {
      const harness = await start((incoming, response) => {
        const { method, url, headers, socket } = incoming
        response.writeHead(203, 'As Told', [
          ...['Set-Cookie', 'a=1'],
          ...['Set-Cookie', 'b=2'],
          ...['Content-Type', 'application/json'],
        ])
        response.end(JSON.stringify({ method, url, headers, address: socket.remoteAddress, port: socket.remotePort }))
      })
      const agent = new Agent({ keepAlive: false })
      const { response, body } = await fetchFrom(harness.port, { agent, path: '/a%20b?x=1', headers: { 'X-A': 'b' } })
      expect(response.statusCode).toBe(203)
      expect(response.statusMessage).toBe('As Told')
      expect(response.headers['set-cookie']).toEqual(['a=1', 'b=2'])
      expect(response.headers['content-type']).toBe('application/json')
      const seen = JSON.parse(body.toString())
      expect(seen).toMatchObject({ method: 'GET', url: '/a%20b?x=1', address: '127.0.0.1' })
      expect(seen.headers).toMatchObject({ 'x-a': 'b', host: `127.0.0.1:${harness.port}` })
      if (traits.remotePort) expect(seen.port).toBeGreaterThan(0)
    })

    it.each(['PUT', 'PATCH', 'DELETE', 'OPTIONS'])('hands on the method %s', async (method) => {
      const harness = await start((incoming, response) => response.end(incoming.method))
      expect((await fetchFrom(harness.port, { method })).body.toString()).toBe(method)
    })

    it.each([
      ['of known length', { 'Content-Length': `${LARGE_BYTES}` }],
      ['in chunks', { 'Transfer-Encoding': 'chunked' }],
    ])('carries a large body %s, both ways', async (_title, headers) => {
      const harness = await start(async (incoming, response) => {
        const body = await bodyOf(incoming)
        response.writeHead(200, headers)
        response.end(body)
      })
      const sent = patternBytes(LARGE_BYTES)
      const { response, body } = await fetchFrom(harness.port, { method: 'POST', headers }, sent)
      expect(response.statusCode).toBe(200)
      expect(body.length).toBe(LARGE_BYTES)
      expect(sha256(body)).toBe(sha256(sent))
    })

    it('carries an empty body, and none', async () => {
      const harness = await start(async (incoming, response) => {
        response.statusCode = incoming.url === '/none' ? 204 : 200
        response.end((await bodyOf(incoming)).toString())
      })
      const empty = await fetchFrom(harness.port, { method: 'POST', headers: { 'Content-Length': '0' } })
      expect(empty.response.headers['content-length']).toBe('0')
      expect(empty.body.length).toBe(0)
      const none = await fetchFrom(harness.port, { path: '/none' })
      expect(none.response.statusCode).toBe(204)
      expect(none.response.headers['content-length']).toBeUndefined()
    })

    it('answers HEAD with the length and without the body', async () => {
      const harness = await start((_incoming, response) => {
        response.setHeader('Content-Length', 1_234)
        response.end()
      })
      const client = await harness.connectSocket()
      client.write('HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
      const { status, headers } = await client.response()
      await client.ended()
      expect(status).toBe(200)
      expect(headers.get('content-length')).toBe('1234')
      expect(client.body).toBe('')
    })

    it('keeps a connection for the next request', async () => {
      const harness = await start((incoming, response) => response.end(incoming.url))
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      onTestFinished(() => agent.destroy())
      const ports = new Set<number | undefined>()
      for (const path of ['/1', '/2', '/3']) {
        const { response, body } = await fetchFrom(harness.port, { agent, path })
        expect(body.toString()).toBe(path)
        ports.add(response.socket?.localPort)
      }
      expect(ports.size).toBe(1)
    })

    it('sends a response on while it is being written', async () => {
      let finish: () => void = () => undefined
      const harness = await start((_incoming, response) => {
        response.write('first')
        finish = () => response.end(' second')
      })
      const client = await harness.connectSocket()
      client.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
      await eventually(() => expect(client.body).toContain('first'))
      finish()
      await eventually(() => expect(client.body).toContain('second'))
    })

    it('slows a handler down whose client does not read', async () => {
      let isHeldUp = false
      const harness = await start((_incoming, response) => {
        const chunk = Buffer.alloc(64 * 1024)
        let sentBytes = 0
        const write = () => {
          // Far more than the kernel takes.
          while (sentBytes < 64 * 1024 * 1024) {
            sentBytes += chunk.length
            if (response.write(chunk)) continue
            const heldUp = setTimeout(() => {
              isHeldUp = true
            }, 300)
            response.once('drain', () => {
              clearTimeout(heldUp)
              write()
            })
            return
          }
          response.end()
        }
        write()
      })
      const client = await harness.connectSocket()
      client.socket.pause()
      client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
      await eventually(() => expect(isHeldUp).toBe(true))
    })

    it.each([true, false])(
      'brings a large response whole to a client that reads late (length known: %s)',
      async (isKnown) => {
        const sent = patternBytes(4 * LARGE_BYTES)
        const harness = await start((_incoming, response) => {
          if (isKnown) response.setHeader('Content-Length', sent.length)
          else response.setHeader('Transfer-Encoding', 'chunked')
          response.end(sent)
        })
        const outgoing = request({ host: '127.0.0.1', port: harness.port, agent: false }).end()
        const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
        response.pause()
        await harness.expectToServe()
        expect(sha256(await bodyOf(response))).toBe(sha256(sent))
      },
    )

    it('slows a client down whose handler does not read', async () => {
      const harness = await start(() => undefined)
      const client = await harness.connectSocket()
      const chunk = Buffer.alloc(1024 * 1024)
      client.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${64 * chunk.length}\r\n\r\n`)
      for (let index = 0; index < 64; index++) client.write(chunk)
      // Bytes that neither the kernel nor the server took stay with the client.
      await harness.expectToServe()
      await harness.expectToServe()
      expect(client.socket.writableLength).toBeGreaterThan(16 * chunk.length)
      expect(client.isEnded).toBe(false)
    })

    it('lets the handler know when its client leaves', async () => {
      let isClosed = false
      const harness = await start((_incoming, response) => {
        response.write('first')
        response.once('close', () => {
          isClosed = true
        })
      })
      const client = await harness.connectSocket()
      client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
      await eventually(() => expect(client.body).toContain('first'))
      client.destroy()
      await eventually(() => expect(isClosed).toBe(true))
    })

    it('breaks a response off that its handler breaks off', async () => {
      const harness = await start((_incoming, response) => {
        response.writeHead(200, { 'Content-Length': '100' })
        response.write('part')
        setImmediate(() => response.destroy())
      })
      const client = await harness.connectSocket()
      client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
      await client.ended()
      expect(client.body.length).toBeLessThan(100)
      await harness.expectToServe()
    })

    it('serves WebSockets and HTTP at once, and never listens with the http server itself', async () => {
      const httpServer = createServer((_incoming, response) => response.end('http'))
      const harness = await Harness.start(create, { httpServer })
      const [, answer] = await Promise.all([harness.connect(), fetchFrom(harness.port)])
      expect(answer.body.toString()).toBe('http')
      expect(httpServer.listening).toBe(false)
      expect(harness.sink.upgrades).toHaveLength(1)
      await harness.expectToServe()
    })

    it('answers plain HTTP with an error when there is no http server', async () => {
      const harness = await Harness.start(create)
      const { response, body } = await fetchFrom(harness.port)
      expect(response.statusCode).toBe(426)
      expect(body.toString()).toContain('E_HANDSHAKE_INVALID')
      await harness.expectToServe()
    })

    it.each([
      ['that is not HTTP', 'hello\r\n\r\n'],
      ['in HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
      ['in TLS', Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, 13, 10, 13, 10])],
    ])('ends a connection with a request %s', async (_title, bytes) => {
      const harness = await start((_incoming, response) => response.end('reached'))
      const client = await harness.connectSocket()
      client.write(bytes)
      await client.ended()
      expect(client.body).not.toContain('reached')
      await harness.expectToServe()
    })
  })
}
