import type { AttackCase } from '../attack-case.js'
import type { Attacker } from '../attacker.js'
import { ask, asking, head, withBody } from '../requests.js'
import { claimsOf, tokenOf } from '../tokens.js'

const SOCKETS = 5
/** As many requests as a connection may have at once. */
const PIPELINED = 8
/** More than a client may have in progress. */
const LIVE_READS = 100
/** As many requests as a client may have in progress. */
const OPEN_BODIES = 64
const BIG_HEAD = head('GET /nothing', `X-Filler: ${'x'.repeat(6_000)}\r\n`)
const BATCH_BYTES = 1024 ** 2
const BATCH_MESSAGES = 8
const PIECES = '1\r\nx\r\n'.repeat(10_000)
const ODD_BODIES: readonly string[] = [
  `{"messages":[${'[],'.repeat(300_000)}[]]}`,
  `{"messages":[${'{},'.repeat(300_000)}{}]}`,
  `{${Array.from({ length: 80_000 }, (_, place) => `"k${place}":0`).join(',')}}`,
  `{"messages":[${'1e300,'.repeat(160_000)}1]}`,
  '['.repeat(1_000_000),
  `{"messages":[${Array.from({ length: 21_000 }, (_, place) => `{"k${place}":0}`).join(',')}]}`,
]
const BATCH = JSON.stringify({
  messages: Array.from({ length: BATCH_MESSAGES }, () => ({
    key: 'evil.batch',
    payload: 'x'.repeat(BATCH_BYTES / BATCH_MESSAGES - 100),
  })),
})

/** Who a client is, at a server that trusts the proxy it comes through. */
function nameOf({ index, jwtSecret }: Attacker): string {
  const token = tokenOf(jwtSecret, claimsOf(`eve-${index}`))
  return `X-Forwarded-For: 203.0.113.${index + 1}\r\nAuthorization: Bearer ${token}\r\n`
}

/** Plain HTTP and event streams. */
export const httpCases: readonly AttackCase[] = [
  {
    name: 'health-flood',
    does: 'asks for /health on five kept connections as fast as it is answered',
    fills: [],
    connections: SOCKETS,
    attack: asking(SOCKETS, () => head('GET /health')),
  },
  {
    name: 'pipelined-heads',
    does: 'pipelines eight heads of 6 kB at once on each of five connections',
    fills: [],
    connections: SOCKETS,
    attack: asking(SOCKETS, () => BIG_HEAD.repeat(PIPELINED), PIPELINED),
  },
  {
    name: 'wrong-keys',
    does: 'asks the HTTP API for the connections with API keys that it guesses',
    fills: [],
    connections: SOCKETS,
    attack: asking(SOCKETS, (place) => head('GET /api/connections', `Authorization: Bearer guess-${place}\r\n`)),
  },
  {
    name: 'big-batches',
    does: 'publishes batches of 1 MiB over HTTP',
    fills: ['body', 'log'],
    attack: asking(1, () => withBody('POST /api/publish/batch', BATCH)),
  },
  {
    name: 'odd-bodies',
    does: 'posts batches of 1 MiB that are hundreds of thousands of lists, objects, members and numbers',
    fills: ['body'],
    attack: asking(1, (place) => withBody('POST /api/publish/batch', ODD_BODIES[place % ODD_BODIES.length] ?? '')),
  },
  {
    name: 'unfinished-bodies',
    does: 'sends 64 batches of 1 MiB that lack their last byte, through a proxy that the server trusts',
    needs: 'proxy',
    fills: ['body'],
    connections: OPEN_BODIES,
    attack: async (client) =>
      await client.hold(OPEN_BODIES, async () => {
        const socket = await client.openSocket()
        const headers = `${nameOf(client)}Content-Type: application/json\r\nContent-Length: ${BATCH_BYTES}\r\n`
        await client.write(socket, head('POST /api/publish/batch', headers) + ' '.repeat(BATCH_BYTES - 1))
        await socket.ended
      }),
  },
  {
    name: 'body-pieces',
    does: 'sends bodies that are refused, or written to streams, in pieces of one byte',
    fills: ['body'],
    connections: SOCKETS,
    attack: async (client) =>
      await client.hold(SOCKETS, async (place) => {
        const socket = await client.openSocket()
        const paths = ['/nothing', '/api/publish/batch', `/api/streams?key=evil.pieces.${client.index}.${place}`]
        const type = place % 3 === 2 ? 'text/plain' : 'application/json'
        const headers = `Content-Type: ${type}\r\nTransfer-Encoding: chunked\r\n`
        await client.write(socket, head(`POST ${paths[place % 3]}`, headers))
        while (!socket.hasEnded) await client.write(socket, PIECES)
      }),
  },
  {
    name: 'stream-flood',
    does: 'opens event streams, and resets them, again and again',
    fills: [],
    connections: SOCKETS,
    attack: async (client) =>
      await client.hold(SOCKETS, async () => {
        const socket = await client.openSocket()
        await ask(client, socket, head('GET /sse?listen=evil.%23&last=10'))
        socket.destroy()
      }),
  },
  {
    name: 'unread-streams',
    does: 'opens five event streams of a key that it publishes large messages to, and never reads them',
    fills: ['inbox', 'outbox', 'message', 'log'],
    connections: SOCKETS + 1,
    attack: async (client) => {
      const key = `evil.stream.${client.index}`
      const reading = client.hold(SOCKETS, async () => {
        const socket = await client.openSocket()
        await ask(client, socket, head(`GET /sse?listen=${key}`))
        socket.pause()
        await socket.ended
      })
      const publishing = client.repeat(async () => {
        const connection = await client.open()
        const message = `publish - ${key}\n"${'x'.repeat(65_536)}"`
        while (!connection.hasEnded) await client.send(connection, message)
      })
      await Promise.all([reading, publishing])
    },
  },
  {
    name: 'live-reads',
    does: 'follows a stream by a hundred live answers at once, through a proxy that the server trusts',
    needs: 'proxy',
    fills: ['streams', 'log'],
    connections: LIVE_READS,
    attack: async (client) => {
      const named = nameOf(client)
      const path = `/streams/evil.live.${client.index}`
      const creating = await client.openSocket()
      await ask(client, creating, head(`PUT ${path}`, `${named}Content-Type: text/plain\r\nContent-Length: 0\r\n`))
      await client.hold(LIVE_READS, async () => {
        const socket = await client.openSocket()
        await ask(client, socket, head(`GET ${path}?offset=-1&live=sse`, named))
        await socket.ended
      })
    },
  },
]
