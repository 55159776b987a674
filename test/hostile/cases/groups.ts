import type { AttackCase } from '../attack-case.js'
import type { Attacker } from '../attacker.js'
import type { RawConnection } from '../raw-connection.js'
import { claimsOf, tokenOf } from '../tokens.js'
import { flood } from './messages.js'

/** As many groups as one connection may be a member of by default. */
const MAX_GROUPS = 128
const CONNECTIONS = 20
/** As many requests as one connection may wait for by default. */
const MAX_REQUESTS = 256
const LARGE = JSON.stringify('x'.repeat(250_000))

/** Queue groups and requests: of what others publish, more than may be, answered by nobody, and not read. */
export const groupCases: readonly AttackCase[] = [
  {
    name: 'groups-of-others',
    does: 'joins 128 queue groups of # on each of 20 connections, and gets what the honest clients publish',
    fills: ['groups', 'outbox'],
    needs: 'tokens',
    connections: CONNECTIONS,
    attack: async (client) =>
      await client.hold(CONNECTIONS, async (holding) => {
        const connection = await open(client)
        for (let place = 0; place < MAX_GROUPS; place++) {
          await client.send(connection, `listen g${place} # group=g${client.index}x${holding}x${place}`)
        }
        await connection.ended
      }),
  },
  {
    name: 'group-joins',
    does: 'joins queue groups of ever new keys on 20 connections, up to its limits and far beyond',
    fills: ['groups', 'inbox'],
    needs: 'tokens',
    connections: CONNECTIONS,
    attack: async (client) =>
      await client.hold(CONNECTIONS, async (holding) => {
        const connection = await open(client)
        const prefix = `evil.g${client.index}x${holding}`
        await flood(client, connection, (place) => `listen j${place % 1_000} ${prefix}.${place} group=g`)
      }),
  },
  {
    name: 'group-churn',
    does: 'joins and leaves queue groups of patterns with several wildcards',
    fills: ['inbox'],
    attack: async (client) =>
      await client.repeat(async () => {
        const connection = await client.open()
        await flood(client, connection, (place) => {
          const verb = place % 2 === 0 ? 'listen' : 'unlisten'
          const pattern = `evil.${client.index}.*.${'*.'.repeat(Math.floor(place / 2) % 24)}#`
          return `${verb} c${place % 1_000} ${pattern} group=g${Math.floor(place / 2) % 64}`
        })
      }),
  },
  {
    name: 'request-hoard',
    does: 'sends requests that its own responder does not answer, disconnects, and comes back',
    fills: ['requests', 'inbox', 'outbox'],
    needs: 'tokens',
    connections: 2,
    attack: async (client) => {
      const key = `evil.h${client.index}`
      const responding = client.repeat(async () => {
        const connection = await open(client)
        await client.send(connection, `listen w ${key} group=h respond`)
        await connection.ended
      })
      const asking = client.repeat(async () => {
        const connection = await open(client)
        for (let place = 0; place < MAX_REQUESTS && !connection.hasEnded; place++) {
          await client.send(connection, `request q${place} ${key} within=300000\n1`)
        }
        connection.destroy()
      })
      await Promise.all([responding, asking])
    },
  },
  {
    name: 'unread-tasks',
    does: 'publishes 250 kB again and again to a queue group whose only member reads nothing',
    fills: ['inbox', 'outbox', 'message', 'log', 'messageIds'],
    connections: 2,
    attack: async (client) => {
      const key = `evil.u${client.index}`
      const working = client.repeat(async () => {
        const connection = await client.open()
        await client.send(connection, `listen w ${key} group=u`)
        connection.pause()
        await connection.ended
      })
      const publishing = client.repeat(async () => {
        const connection = await client.open()
        await flood(
          client,
          connection,
          (place) => `publish p${place % 1_000} ${key} id=${client.index}x${place}\n${LARGE}`,
        )
      })
      await Promise.all([working, publishing])
    },
  },
]

async function open(client: Attacker): Promise<RawConnection> {
  return await client.open({ token: tokenOf(client.jwtSecret, claimsOf(`eve-${client.index}`)) })
}
