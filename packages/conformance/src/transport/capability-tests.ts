import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { TransportCapabilities } from 'webmq-server/ports'
import { itWhere } from '../applies.js'
import { eventually } from './eventually.js'
import { type CreateTransport, DEFAULT_OPTIONS, group } from './harness.js'
import { RecordingSink } from './recording-sink.js'
import { WebSocketClient } from './web-socket-client.js'

/** The capabilities that a transport reports, and its behaviour. */
export function capabilityTests(create: CreateTransport, expected: TransportCapabilities): void {
  describe('capabilities', () => {
    it('are as expected', () => {
      expect(create(DEFAULT_OPTIONS).capabilities).toEqual(expected)
    })

    itWhere(!expected.attach)('refuses to attach with E_UNSUPPORTED', () => {
      const transport = create(DEFAULT_OPTIONS)
      const attach = () => transport.attach(createServer(), new RecordingSink())
      expect(attach).toThrow(expect.objectContaining({ code: 'E_UNSUPPORTED' }))
    })

    itWhere(expected.attach)('leaves upgrades of other paths to the other listeners of the server', async () => {
      const server = createServer()
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      onTestFinished(() => void server.close())
      const { port } = server.address() as AddressInfo
      const others: string[] = []
      server.on('upgrade', ({ url = '' }, socket) => {
        if (socket.destroyed) return
        others.push(url)
        // A client may reset what has refused it.
        socket.on('error', () => undefined)
        socket.end('HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n')
      })
      const transport = create(DEFAULT_OPTIONS)
      onTestFinished(() => transport.stop())
      const sink = new RecordingSink({ upgrade: ({ id }) => transport.accept(id) })
      transport.attach(server, sink, '/ws')

      const member = await WebSocketClient.open(`ws://127.0.0.1:${port}/ws?a=/b`)
      onTestFinished(() => member.destroy())
      for (const path of ['/', '/ws/', '/wss', '/other?/ws']) {
        await expect(WebSocketClient.open(`ws://127.0.0.1:${port}${path}`)).rejects.toThrow()
      }
      expect(others).toEqual(['/', '/ws/', '/wss', '/other?/ws'])
      expect(sink.upgrades.map(({ path }) => path)).toEqual(['/ws'])
    })

    itWhere(expected.attach)('takes the upgrades of an http server, until it is told to stop', async () => {
      const server = createServer((_incoming, response) => response.end('http'))
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      onTestFinished(() => void server.close())
      const { port } = server.address() as AddressInfo
      const url = `ws://127.0.0.1:${port}`
      const transport = create(DEFAULT_OPTIONS)
      onTestFinished(() => transport.stop())
      const sink = new RecordingSink({
        upgrade: ({ id }) => transport.accept(id, { headers: { 'x-node': 'a' } }),
        message: (connection, data, isBinary) => transport.send(connection, data, isBinary),
      })
      const detach = transport.attach(server, sink)

      const client = await WebSocketClient.open(`${url}/ws?a=1`, {
        headers: { 'X-B': 'c' },
        subprotocols: ['one'],
      }).catch((error: unknown) => error)
      // `ws` refuses a server that does not choose one of the offered subprotocols, but the upgrade has arrived.
      expect(client).toBeInstanceOf(Error)
      expect(sink.upgrades[0]).toMatchObject({
        path: '/ws',
        query: 'a=1',
        subprotocols: ['one'],
        remoteAddress: '127.0.0.1',
      })
      expect(sink.upgrades[0]?.headers).toMatchObject({ 'x-b': 'c' })

      const member = await WebSocketClient.open(`${url}/ws`)
      onTestFinished(() => member.destroy())
      for (const text of ['first', 'second']) member.send(text)
      await eventually(() => expect(member.messages).toEqual(['first', 'second']))
      const [connection] = [...sink.opened.keys()].slice(-1)
      if (connection === undefined) throw new Error('no connection')
      transport.join(connection, group(1))
      transport.multicast([group(1)], 'third', false)
      await eventually(() => expect(member.messages.at(-1)).toBe('third'))

      const body = await new Promise<string>((resolve, reject) => {
        const options = { host: '127.0.0.1', port, agent: false }
        request(options, (response) => response.on('data', (chunk) => resolve(String(chunk))))
          .on('error', reject)
          .end()
      })
      expect(body).toBe('http')

      detach()
      await expect(WebSocketClient.open(`${url}/ws`)).rejects.toThrow()
      member.send('still connected')
      await eventually(() => expect(member.messages.at(-1)).toBe('still connected'))
      await transport.stop()
      await expect(member.closed).resolves.toMatchObject({ code: 1001 })
    })
  })
}
