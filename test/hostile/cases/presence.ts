import type { AttackCase } from '../attack-case.js'
import { flood, repeating } from './messages.js'

const MEMBERS_PER_CLIENT = 20
/** As large as the data of a member may be by default, less its JSON. */
const DATA = JSON.stringify({ filler: 'd'.repeat(4_000) })
/** As large as a message may be: refused, but handed over whole. */
const HUGE_DATA = JSON.stringify({ filler: 'd'.repeat(250_000) })
const WATCHED_KEYS = 16
/** As many as one connection may enter by default. */
const ENTERED_KEYS = 128

/** Presence: coming and going, large answers, and watching each other. */
export const presenceCases: readonly AttackCase[] = [
  {
    name: 'presence-churn',
    does: 'enters and leaves one key after the other',
    fills: ['inbox'],
    attack: repeating((place) => {
      const key = `evil.room.${Math.floor(place / 2) % 64}`
      return place % 2 === 0 ? `presence e${place % 1_000} ${key} op=enter member=m` : `presence l ${key} op=leave`
    }),
  },
  {
    name: 'presence-members',
    does: 'enters the same key under ever new names',
    fills: ['inbox'],
    attack: repeating((place) => `presence m${place % 1_000} evil.room op=enter member=m${place}\n{"n":${place}}`),
  },
  {
    name: 'presence-fill',
    does: 'holds 20 connections that enter 128 keys each, with data of 4 kB',
    fills: ['presence'],
    connections: MEMBERS_PER_CLIENT,
    attack: async (client) =>
      await client.hold(MEMBERS_PER_CLIENT, async (holding) => {
        const connection = await client.open()
        for (let place = 0; place < ENTERED_KEYS; place++) {
          const key = `evil.f${client.index}x${holding}.${place}`
          await client.send(connection, `presence f${place} ${key} op=enter member=m\n${DATA}`)
        }
        await connection.ended
      }),
  },
  {
    name: 'presence-get',
    does: 'enters a key with 20 members of 4 kB and asks for all members',
    fills: ['inbox', 'outbox'],
    connections: MEMBERS_PER_CLIENT + 1,
    attack: async (client) => {
      const members = client.hold(MEMBERS_PER_CLIENT, async (place) => {
        const connection = await client.open()
        await client.send(connection, `presence m evil.hall op=enter member=m${client.index}x${place}\n${DATA}`)
        await connection.ended
      })
      const asking = repeating((place) => `presence g${place % 1_000} evil.hall op=get`)(client)
      await Promise.all([members, asking])
    },
  },
  {
    name: 'presence-watchers',
    does: 'watches 16 keys with 20 connections that all change their data',
    fills: ['outbox'],
    connections: MEMBERS_PER_CLIENT,
    attack: async (client) =>
      await client.hold(MEMBERS_PER_CLIENT, async (holding) => {
        const connection = await client.open()
        for (let place = 0; place < WATCHED_KEYS; place++) {
          await client.send(connection, `presence w${place} evil.watched.${place} op=watch`)
        }
        await flood(client, connection, (place) => {
          const member = `m${client.index}x${holding}`
          return `presence e evil.watched.${place % WATCHED_KEYS} op=enter member=${member}\n{"n":${place}}`
        })
      }),
  },
  {
    name: 'presence-linger',
    does: 'enters 128 keys, is cut, and comes back to enter 128 others, again and again',
    fills: ['presence'],
    attack: async (client) => {
      let place = 0
      await client.repeat(async () => {
        const connection = await client.open()
        for (let count = 0; count < ENTERED_KEYS; count++, place++)
          await client.send(connection, `presence e evil.l${client.index}.${place} op=enter member=m`)
        connection.destroy()
      })
    },
  },
  {
    name: 'presence-huge-data',
    does: 'enters with data of 250 kB, which are refused',
    fills: ['inbox', 'message'],
    attack: repeating((place) => `presence h${place % 1_000} evil.room op=enter member=m\n${HUGE_DATA}`),
  },
]
