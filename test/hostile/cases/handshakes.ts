import { randomBytes } from 'node:crypto'
import type { AttackCase } from '../attack-case.js'
import type { Attacker } from '../attacker.js'
import { upgradeRequest } from '../raw-connection.js'
import type { RawSocket } from '../raw-socket.js'

/** With ten clients, more than the sockets without a handshake that a server keeps by default. */
const IDLE_SOCKETS = 110
const FLOODING_SOCKETS = 8
const DRIPPING_SOCKETS = 20
const DRIP_MS = 250
const HEADER_LINE = `X-Filler: ${'x'.repeat(100)}\r\n`
const OVERSIZED_HEAD_BYTES = 65_536

/** Before and beside WebSocket: TCP, HTTP and the handshake. */
export const handshakeCases: readonly AttackCase[] = [
  {
    name: 'connect-flood',
    does: 'connects with eight sockets, with and without a handshake, and resets, again and again',
    fills: [],
    connections: FLOODING_SOCKETS,
    attack: async (client) =>
      await client.hold(FLOODING_SOCKETS, async (place) => {
        const connection = place % 2 === 0 ? await client.open() : await client.openSocket()
        connection.destroy()
      }),
  },
  {
    name: 'half-handshakes',
    does: 'holds 20 handshakes whose head comes one byte every 250 ms',
    fills: [],
    connections: DRIPPING_SOCKETS,
    attack: async (client) =>
      await client.hold(DRIPPING_SOCKETS, async () => {
        const socket = await client.openSocket()
        for (const char of upgradeRequest(client.port)) {
          await client.write(socket, char)
          await client.sleep(DRIP_MS)
        }
        await socket.ended
      }),
  },
  {
    name: 'endless-head',
    does: 'sends header lines without end',
    fills: [],
    attack: async (client) =>
      await client.repeat(async () => {
        const socket = await client.openSocket()
        await client.write(socket, upgradeRequest(client.port).slice(0, -2))
        while (!socket.hasEnded) await client.write(socket, HEADER_LINE)
      }),
  },
  {
    name: 'idle-sockets',
    does: 'holds 110 connections that never send a byte',
    fills: [],
    connections: IDLE_SOCKETS,
    attack: async (client) =>
      await client.hold(IDLE_SOCKETS, async () => {
        const socket = await client.openSocket()
        await socket.ended
      }),
  },
  {
    name: 'kept-alive-sockets',
    does: 'holds 110 connections that ask for /health once and stay',
    fills: [],
    connections: IDLE_SOCKETS,
    attack: async (client) =>
      await client.hold(IDLE_SOCKETS, async () => {
        const socket = await client.openSocket()
        await client.write(socket, 'GET /health HTTP/1.1\r\nHost: a\r\n\r\n')
        await socket.ended
      }),
  },
  {
    name: 'pipelined-requests',
    does: 'pipelines requests for /health without waiting',
    fills: [],
    attack: async (client) =>
      await client.repeat(async () => await pipeline(client, await client.openSocket(), '/health')),
  },
  {
    name: 'unread-metrics',
    does: 'pipelines requests for /metrics and never reads an answer',
    fills: [],
    attack: async (client) =>
      await client.repeat(async () => {
        const socket = await client.openSocket()
        socket.pause()
        await pipeline(client, socket, '/metrics')
      }),
  },
  {
    name: 'bad-requests',
    does: 'sends wrong paths, versions, origins and subprotocols, heads of 64 KiB, and random bytes',
    fills: [],
    attack: async (client) => {
      const right = upgradeRequest(client.port)
      const wrong = [
        right.replace('/ws', '/admin'),
        right.replace('Version: 13', 'Version: 8'),
        right.replace('\r\n\r\n', '\r\nOrigin: http://evil.example\r\n\r\n'),
        right.replace('webmq.v1', 'mqtt'),
        right.replace('GET', 'POST'),
        `GET /${'x'.repeat(OVERSIZED_HEAD_BYTES)} HTTP/1.1\r\n`,
        randomBytes(1_024).toString('latin1'),
      ]
      let place = client.index
      await client.repeat(async () => {
        const socket = await client.openSocket()
        await client.write(socket, wrong[place++ % wrong.length] ?? right)
        await Promise.race([socket.ended, client.sleep(100)])
        socket.destroy()
      })
    },
  },
]

async function pipeline(client: Attacker, socket: RawSocket, path: string): Promise<void> {
  while (!socket.hasEnded) await client.write(socket, `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
}
