import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { eventually } from './eventually.js'
import { Harness, type TestedTransport } from './harness.js'
import { handshakeHead } from './raw-client.js'

const V1 = Buffer.from('PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n')
const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const V4_ADDRESSES = Buffer.from([192, 0, 2, 2, 198, 51, 100, 1, 0, 9, 1, 187])
const V6_ADDRESSES = Buffer.from(`20010db8${'00'.repeat(11)}01${'00'.repeat(16)}0007${'0009'}`, 'hex')
const LOOPBACK = ['127.0.0.0/8', '::1']
const REQUEST = 'GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'

function v2(command: number, family: number, rest: Uint8Array = Buffer.alloc(0), length = rest.length): Buffer {
  return Buffer.concat([SIGNATURE, Buffer.from([command, family, length >> 8, length & 0xff]), rest])
}

/** Sends a header before anything else, TLS included, then text; returns all that comes back. */
async function answerTo(harness: Harness, isSecure: boolean, header: Uint8Array | Uint8Array[], text: string) {
  const socket: Socket = connect({ port: harness.port, host: '127.0.0.1' })
  harness.track(socket)
  await once(socket, 'connect')
  socket.setNoDelay(true)
  for (const part of [header].flat()) {
    socket.write(part)
    await new Promise((resolve) => setImmediate(resolve))
  }
  const peer = isSecure ? connectSecurely({ socket, rejectUnauthorized: false }) : socket
  let answer = ''
  let isOver = false
  const end = () => {
    isOver = true
  }
  peer.on('data', (chunk: Buffer) => {
    answer += chunk.toString('latin1')
  })
  for (const each of [socket, peer]) each.on('error', end).on('close', end)
  peer.write(text)
  await eventually(() => expect(isOver || answer.includes('\r\n\r\n')).toBe(true))
  return answer
}

/** Headers of the PROXY protocol before everything else. @param isSecure Whether the transport serves TLS. */
export function proxyProtocolTests(create: TestedTransport, isSecure = false): void {
  const start = (from: readonly string[], more = {}) => Harness.start(create, { proxyProtocolFrom: from, ...more })
  const answer = (harness: Harness, header: Uint8Array | Uint8Array[], text: string) =>
    answerTo(harness, isSecure, header, text)

  describe('PROXY protocol', () => {
    it.each([
      ['version 1', V1, '192.0.2.1', 56_324],
      ['version 2', v2(0x21, 0x11, V4_ADDRESSES), '192.0.2.2', 9],
      ['version 2 with TLVs', v2(0x21, 0x11, Buffer.concat([V4_ADDRESSES, Buffer.from([4, 0, 1, 7])])), '192.0.2.2', 9],
      ['version 2 with IPv6', v2(0x21, 0x21, V6_ADDRESSES), '2001:db8::1', 7],
      ['a connection of the proxy itself', v2(0x20, 0), '127.0.0.1', undefined],
      ['no address', Buffer.from('PROXY UNKNOWN\r\n'), '0.0.0.0', undefined],
    ])('takes the client of an upgrade from %s', async (_what, header, address, port) => {
      const harness = await start(LOOPBACK)
      expect(await answer(harness, header, handshakeHead('/ws'))).toContain('HTTP/1.1 101 ')
      expect(harness.sink.upgrades.map(({ remoteAddress }) => remoteAddress)).toEqual([address])
      if (port !== undefined) expect(harness.sink.upgrades[0]?.remotePort).toBe(port)
    })

    it('takes the client of a request from it, in parts too', async () => {
      const httpServer = createServer(({ socket }, response) => {
        const { remoteAddress, remotePort } = socket
        response.end(JSON.stringify({ remoteAddress, remotePort, isSecure: 'encrypted' in socket }))
      })
      const harness = await start(LOOPBACK, { httpServer })
      const header = v2(0x21, 0x11, V4_ADDRESSES)
      const expected = JSON.stringify({ remoteAddress: '192.0.2.2', remotePort: 9, isSecure })
      expect(await answer(harness, header, REQUEST)).toContain(expected)
      const parts = [header.subarray(0, 3), header.subarray(3, 17), header.subarray(17)]
      expect(await answer(harness, parts, REQUEST)).toContain(expected)
    })

    it.each([
      ['no header', Buffer.alloc(0)],
      ['a malformed address', Buffer.from('PROXY TCP4 192.0.2.256 198.51.100.1 56324 443\r\n')],
      ['a malformed port', Buffer.from('PROXY TCP4 192.0.2.1 198.51.100.1 +1 443\r\n')],
      ['an unknown family', Buffer.from('PROXY UDP4 192.0.2.1 198.51.100.1 1 443\r\n')],
      ['a line without an end', Buffer.from(`PROXY UNKNOWN ${'x'.repeat(200)}`)],
      ['an unknown version', v2(0x31, 0x11, V4_ADDRESSES)],
      ['an unknown command', v2(0x22, 0x11, V4_ADDRESSES)],
      ['too few bytes of addresses', v2(0x21, 0x21, V4_ADDRESSES)],
      ['a TLV beyond the end', v2(0x21, 0x11, Buffer.concat([V4_ADDRESSES, Buffer.from([4, 0, 9, 7])]))],
      ['a length beyond the limit', v2(0x21, 0x11, V4_ADDRESSES, 0xff_ff)],
    ])('closes a connection of a proxy with %s, and counts it', async (_what, header) => {
      const harness = await start(LOOPBACK)
      expect(await answer(harness, header, handshakeHead('/ws'))).toBe('')
      expect(harness.sink.upgrades).toEqual([])
      await eventually(() => expect(harness.transport.stats().proxyHeaderRefusedCount).toBe(1))
      // A thread counts before the sink is told.
      const failures = () => harness.sink.failures.map(({ message }) => message)
      await eventually(() => expect(failures()).toEqual([expect.stringContaining('127.0.0.1')]))
    })

    it('does not wait for a header longer than for a request', async () => {
      const harness = await start(LOOPBACK, { handshakeTimeoutMs: 300 })
      const client = await harness.connectTcp()
      client.write(V1.subarray(0, 20))
      await client.ended()
    })

    it('believes nobody else, who then connects without a header', async () => {
      const harness = await start(['10.0.0.0/8'])
      expect(await answer(harness, Buffer.alloc(0), handshakeHead('/ws'))).toContain('HTTP/1.1 101 ')
      expect(await answer(harness, V1, handshakeHead('/ws'))).not.toContain('HTTP/1.1 101 ')
      expect(harness.sink.upgrades.map(({ remoteAddress }) => remoteAddress)).toEqual(['127.0.0.1'])
      expect(harness.transport.stats().proxyHeaderRefusedCount).toBe(0)
    })
  })
}
