import type { AttackCase } from '../attack-case.js'
import type { Attacker } from '../attacker.js'
import type { RawConnection } from '../raw-connection.js'
import { claimsOf, tokenOf } from '../tokens.js'
import { flood } from './messages.js'

/** More than a user may write at the same time by default. */
const STREAMS_PER_USER = 20
/** Of one client, each a user of its own: all clients together ask for a million streams in a few minutes. */
const USERS = 20
/** As large as a stream may be by default, in appends of the largest payload but one. */
const TEXT = JSON.stringify('x'.repeat(250_000))
const UNREAD_READERS = 4
const LEAST_READ_MS = 500

/** Streams: of single bytes, of ever new keys, stopped all the time, and read by nobody or by everybody. */
export const streamCases: readonly AttackCase[] = [
  {
    name: 'stream-bytes',
    does: 'appends single bytes to one stream after the other, and waits for no answer',
    fills: ['inbox', 'log', 'messageIds', 'streams'],
    attack: async (client) => {
      let round = 0
      await client.repeat(async () => {
        const connection = await client.open()
        const key = `evil.s${client.index}x${round++}`
        await client.send(connection, startOf(key))
        await flood(
          client,
          connection,
          (place) => `stream a${place % 1_000} ${key} of=S seq=${place + 1} kind=append\n"x"`,
        )
      })
    },
  },
  {
    name: 'stream-churn',
    does: 'begins and ends streams of ever new keys',
    fills: ['inbox', 'log', 'messageIds', 'streams'],
    attack: async (client) => {
      let round = 0
      await client.repeat(async () => {
        const connection = await client.open()
        const prefix = `evil.c${client.index}x${round++}`
        await flood(client, connection, (place) => {
          const key = `${prefix}.${Math.floor(place / 2)}`
          return place % 2 === 0 ? startOf(key) : `stream e${place % 1_000} ${key} of=S seq=1 kind=end\n`
        })
      })
    },
  },
  {
    name: 'stream-starts',
    does: 'begins streams as 20 users, up to the limit of each and far beyond, and leaves them',
    fills: ['inbox', 'log', 'messageIds', 'streams'],
    needs: 'tokens',
    connections: USERS,
    attack: async (client) =>
      await client.hold(USERS, async (user) => {
        const token = tokenOf(client.jwtSecret, claimsOf(`eve-${client.index}-${user}`))
        const connection = await client.open({ token })
        const prefix = `evil.m${client.index}x${user}`
        await flood(client, connection, (place) =>
          place % STREAMS_PER_USER === 0 ? 'ping' : startOf(`${prefix}.${place}`),
        )
      }),
  },
  {
    name: 'stream-races',
    does: 'begins ever new streams at a key where all others do, too',
    fills: ['inbox', 'log', 'messageIds', 'streams'],
    attack: async (client) => {
      let round = 0
      await client.repeat(async () => {
        const connection = await client.open()
        const name = `${client.index}x${round++}`
        await flood(client, connection, (place) => {
          const id = `${name}x${Math.floor(place / 2)}`
          const [sequence, kind] = place % 2 === 0 ? [0, 'start'] : [1, 'end']
          return `stream r${place % 1_000} evil.race of=${id} seq=${sequence} kind=${kind}\n`
        })
      })
    },
  },
  {
    name: 'stream-stops',
    does: 'asks the writer of a stream to stop, all the time; the writer answers nobody',
    fills: ['inbox', 'log', 'streams'],
    connections: 2,
    attack: async (client) => {
      const key = `evil.t${client.index}`
      const writing = client.repeat(async () => {
        const connection = await client.open()
        await client.send(connection, startOf(key))
        await client.send(connection, `listen w ${key} group=stream respond`)
        await connection.ended
      })
      const stopping = client.repeat(async () => {
        const connection = await client.open()
        await flood(client, connection, (place) => `request q${place % 1_000} ${key} within=300000\n{"type":"stop"}`)
      })
      await Promise.all([writing, stopping])
    },
  },
  {
    name: 'stream-reads',
    does: 'writes a stream of 500 kB, and asks for all of it, all the time',
    fills: ['inbox', 'outbox', 'message', 'log', 'streams'],
    attack: async (client) =>
      await client.repeat(async () => {
        const connection = await client.open()
        const key = await largeStream(client, connection)
        await flood(client, connection, (place) => `read r${place % 1_000} ${key}`)
      }),
  },
  {
    name: 'stream-unread',
    does: 'asks for a stream of 500 kB on 4 connections that read nothing, and listens there',
    fills: ['inbox', 'outbox', 'message', 'log', 'streams'],
    connections: 1 + UNREAD_READERS,
    attack: async (client) => {
      const writing = client.repeat(async () => {
        const connection = await client.open()
        await largeStream(client, connection)
        await connection.ended
      })
      const reading = client.hold(UNREAD_READERS, async () => {
        const connection = await client.open()
        await client.send(connection, `listen l ${keyOf(client)}`)
        connection.pause()
        const flooding = flood(client, connection, (place) => `read u${place % 1_000} ${keyOf(client)}`)
        await Promise.race([flooding, client.sleep(LEAST_READ_MS)])
        connection.destroy()
        await flooding
      })
      await Promise.all([writing, reading])
    },
  },
  {
    name: 'stream-reads-of-nothing',
    does: 'reads streams of keys that have none',
    fills: ['inbox', 'log'],
    attack: async (client) =>
      await client.repeat(async () => {
        const connection = await client.open()
        await flood(client, connection, (place) => `read n${place % 1_000} evil.none.${client.index}.${place}`)
      }),
  },
]

function keyOf({ index }: Attacker): string {
  return `evil.large.${index}`
}

function startOf(key: string): string {
  return `stream s ${key} of=S seq=0 kind=start\n`
}

async function largeStream(client: Attacker, connection: RawConnection): Promise<string> {
  const key = keyOf(client)
  await client.send(connection, startOf(key))
  for (let sequence = 1; sequence <= 2; sequence++)
    await client.send(connection, `stream l${sequence} ${key} of=S seq=${sequence} kind=append\n${TEXT}`)
  return key
}
