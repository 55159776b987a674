import type { AttackCase } from '../attack-case.js'
import type { Attacker } from '../attacker.js'
import { flood, repeating } from './messages.js'

/** As many patterns as one connection may have by default. */
const MAX_LISTENS = 128
const RETAINING_CONNECTIONS = 20
const WIDE_WORDS = 100
/** What a server that bounds words and `#` still takes. */
const BOUNDED_WORDS = 32
const SEARCHING_LISTENS = 16
/** Over all clients, more than the log keeps by default. */
const LOGGED_MESSAGES = 1_200
/** Makes a header of about two kilobytes. */
const RETAINED_OPTION = `x=${'y'.repeat(1_850)}`

/** Listens: many, dear, and coming and going. */
export const listenCases: readonly AttackCase[] = [
  {
    name: 'listen-churn',
    does: 'listens and stops listening, one pattern after the other',
    fills: ['inbox'],
    attack: repeating((place) => {
      const verb = place % 2 === 0 ? 'listen' : 'unlisten'
      return `${verb} c${place % 1_000} evil.churn.${Math.floor(place / 2) % 64}.*.#`
    }),
  },
  {
    name: 'hash-patterns',
    does: 'listens to 128 patterns with several # and publishes to keys of many words',
    fills: ['inbox', 'log'],
    attack: async (client) =>
      await client.repeat(async () => {
        const connection = await client.open()
        for (let place = 0; place < MAX_LISTENS; place++) {
          await client.send(connection, `listen h${place} #.a.#.a.#.a.#.b${client.index}x${place}.#`)
        }
        await flood(client, connection, (place) => `publish - ${'a.'.repeat(30)}k${place % 100}\n{}`)
      }),
  },
  {
    name: 'bounded-hash-patterns',
    does: 'listens to 16 patterns with three # and 32 words, and publishes to keys that match almost',
    fills: ['inbox', 'log'],
    attack: async (client) =>
      await client.repeat(async () => {
        const connection = await client.open()
        for (let place = 0; place < SEARCHING_LISTENS; place++) {
          await client.send(connection, `listen h${place} #${'.a'.repeat(14)}.#${'.a'.repeat(13)}.b${place}.#`)
        }
        await flood(client, connection, (place) => `publish - ${'a.'.repeat(BOUNDED_WORDS - 1)}k${place}\n{}`)
      }),
  },
  {
    name: 'hash-patterns-of-others',
    does: 'listens to 128 patterns with several # and leaves publishing to the honest clients',
    fills: [],
    attack: async (client) =>
      await client.repeat(async () => {
        const connection = await client.open()
        for (let place = 0; place < MAX_LISTENS; place++) {
          await client.send(connection, `listen h${place} #.#.tick.#.#.x${client.index}x${place}.#`)
        }
        await connection.ended
      }),
  },
  {
    name: 'distinct-patterns',
    does: 'listens to new patterns of 255 bytes until it is refused, and comes back',
    fills: ['inbox'],
    attack: async (client) => {
      let round = 0
      await client.repeat(async () => {
        const connection = await client.open()
        round++
        for (let place = 0; place < MAX_LISTENS * 2; place++) {
          await client.send(connection, `listen d${place} ${longPattern(client, round, place)}`)
        }
        connection.destroy()
      })
    },
  },
  {
    name: 'retained-headers',
    does: 'holds 20 connections with 128 listens whose headers have 2 kB each',
    fills: [],
    connections: RETAINING_CONNECTIONS,
    attack: async (client) =>
      await client.hold(RETAINING_CONNECTIONS, async (holding) => {
        const connection = await client.open()
        for (let place = 0; place < MAX_LISTENS; place++) {
          await client.send(connection, `listen r${place} evil.r${client.index}x${holding}.${place} ${RETAINED_OPTION}`)
        }
        await connection.ended
      }),
  },
  {
    name: 'wide-listens',
    does: 'holds 20 connections with 128 listens of 120 words each',
    fills: [],
    connections: RETAINING_CONNECTIONS,
    attack: async (client) =>
      await client.hold(RETAINING_CONNECTIONS, async (holding) => {
        const connection = await client.open()
        for (let place = 0; place < MAX_LISTENS; place++) {
          await client.send(connection, `listen w${place} ${client.index}${holding}${place}${'.a'.repeat(120)}`)
        }
        await connection.ended
      }),
  },
  {
    name: 'search-reads',
    does: 'logs 2 MB under keys of 100 words, then listens to #.a.a…b.# with last=1',
    fills: ['inbox', 'log'],
    attack: async (client) => {
      const key = `e${'.a'.repeat(WIDE_WORDS - 1)}`
      await client.repeat(async () => {
        const connection = await client.open()
        const share = 200_000
        for (let sentBytes = 0; sentBytes < share && !connection.hasEnded; sentBytes += key.length) {
          await client.send(connection, `publish - ${key}\n{}`)
        }
        await flood(client, connection, (place) => `listen s${place} #${'.a'.repeat(60)}.b${place}.# last=1`)
      })
    },
  },
  {
    name: 'bounded-searches',
    does: 'logs messages under keys of 32 words, then listens to #.a.#.a…b.# with last=1, again and again',
    fills: ['inbox', 'log'],
    attack: async (client) => {
      const key = `e${'.a'.repeat(BOUNDED_WORDS - 1)}`
      await client.repeat(async () => {
        const connection = await client.open()
        for (let place = 0; place < LOGGED_MESSAGES && !connection.hasEnded; place++) {
          await client.send(connection, `publish - ${key}\n{}`)
        }
        await flood(client, connection, (place) => {
          const pattern = `#${'.a'.repeat(14)}.#${'.a'.repeat(13)}.b${Math.floor(place / 2) % SEARCHING_LISTENS}.#`
          return place % 2 === 0
            ? `listen s${place % 1_000} ${pattern} last=1`
            : `unlisten u${place % 1_000} ${pattern}`
        })
      })
    },
  },
  {
    name: 'echo-storm',
    does: 'listens to # and publishes, so that all of them get everything',
    fills: ['inbox', 'outbox', 'log'],
    attack: async (client) =>
      await client.repeat(async () => {
        const connection = await client.open()
        await client.send(connection, 'listen e #')
        await flood(client, connection, () => `publish - evil.echo.${client.index}\n{}`)
      }),
  },
]

function longPattern(client: Attacker, round: number, place: number): string {
  return `${client.index}.${round}.${place}.`.padEnd(253, 'p').concat('.*').slice(-255)
}
