import type { AttackCase } from '../attack-case.js'
import { claimsOf, forgedTokens, STRANGE_USERS, tokenOf } from '../tokens.js'
import { flood, repeating } from './messages.js'

const MAX_TOKEN_BYTES = 8_192
const SILENT_CONNECTIONS = 20
const LISTENS = 64

/** Tokens, on a server that asks for them; and clients that never settle. */
export const tokenCases: readonly AttackCase[] = [
  {
    name: 'auth-flood',
    does: 'sends tokens of 8 KiB of garbage and comes back',
    fills: ['inbox'],
    needs: 'tokens',
    attack: async (client) =>
      await client.repeat(async () => {
        const connection = await client.open()
        const garbage = `${'e30.'.repeat(2)}${'A'.repeat(MAX_TOKEN_BYTES - 8)}`
        await flood(client, connection, (place) => `auth a${place % 1_000}\n${garbage}`)
      }),
  },
  {
    name: 'forged-tokens',
    does: 'comes with tokens of other keys, algorithms and issuers, in the upgrade and in auth',
    fills: [],
    needs: 'tokens',
    attack: async (client) => {
      const tokens = forgedTokens(client.jwtSecret)
      let place = client.index
      await client.repeat(async () => {
        const token = tokens[place++ % tokens.length] ?? ''
        const connection = await client.open(place % 2 === 0 ? { token } : {})
        await client.send(connection, `auth f\n${token}`)
        await Promise.race([connection.ended, client.sleep(500)])
        connection.destroy()
      })
    },
  },
  {
    name: 'strange-users',
    does: 'publishes with valid tokens whose sub is long, not ASCII, or has line breaks',
    fills: ['log', 'messageIds'],
    needs: 'tokens',
    attack: async (client) => {
      let place = client.index
      await client.repeat(async () => {
        const token = tokenOf(client.jwtSecret, claimsOf(STRANGE_USERS[place++ % STRANGE_USERS.length] ?? ''))
        const connection = await client.open(place % 2 === 0 ? { token } : {})
        await client.send(connection, `auth s\n${token}`)
        await client.send(connection, 'listen l evil.users')
        for (let id = 0; id < 20; id++) await client.send(connection, `publish p${id} evil.users id=u-${id}\n{}`)
        await client.send(connection, 'presence e evil.users op=enter member=m')
        await Promise.race([connection.ended, client.sleep(100)])
        connection.destroy()
      })
    },
  },
  {
    name: 'no-token',
    does: 'holds 20 connections without a token that send requests all the time',
    fills: [],
    needs: 'tokens',
    connections: SILENT_CONNECTIONS,
    attack: async (client) =>
      await client.hold(SILENT_CONNECTIONS, async () => {
        const connection = await client.open()
        await flood(client, connection, (place) => `listen n${place % 1_000} evil.#`)
      }),
  },
  {
    name: 'token-renewals',
    does: 'renews a valid token all the time',
    fills: ['inbox'],
    needs: 'tokens',
    attack: async (client) => {
      const token = tokenOf(client.jwtSecret, claimsOf(`eve-${client.index}`))
      await repeating((place) => `auth r${place % 1_000}\n${token}`)(client)
    },
  },
  {
    name: 'reconnect-storm',
    does: 'connects, listens to 64 patterns with last=100, and resets, again and again',
    fills: ['outbox'],
    attack: async (client) =>
      await client.repeat(async () => {
        const connection = await client.open()
        for (let place = 0; place < LISTENS; place++) {
          await client.send(connection, `listen s${place} #.${place}.# last=100`)
        }
        await client.sleep(50)
        connection.destroy()
      }),
  },
]
