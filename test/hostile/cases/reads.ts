import type { AttackCase } from '../attack-case.js'
import type { Attacker } from '../attacker.js'
import type { RawConnection } from '../raw-connection.js'
import { flood, repeating } from './messages.js'

/** Over all clients, more than the log keeps by default. */
const LOGGED_MESSAGES = 1_200
const LISTENS = 128
const BUSY_PAYLOAD = 'x'.repeat(65_536)
const RESUMED_PAYLOAD = 'x'.repeat(200_000)
const SLOW_BYTES_PER_SECOND = 200_000
const SLOW_STEP_MS = 50

/** Reads of the log, and readers that do not read. */
export const readCases: readonly AttackCase[] = [
  {
    name: 'history-flood',
    does: 'fills the log and asks for its newest and its oldest messages, reversed and not',
    fills: ['inbox', 'outbox', 'log'],
    attack: reading((place) => {
      const options = ['last=10000', 'limit=10000 reverse', 'rewind=600000', 'last=1'][place % 4]
      return `history h${place % 1_000} evil.log ${options}`
    }),
  },
  {
    name: 'history-of-nothing',
    does: 'fills the log and asks for the history of keys that are not in it',
    fills: ['inbox', 'outbox', 'log'],
    attack: reading((place) => `history n${place % 1_000} evil.none.${place} last=1`),
  },
  {
    name: 'replay-loop',
    does: 'fills the log and listens to 128 patterns from the start of it, again and again',
    fills: ['inbox', 'outbox', 'log'],
    attack: reading((place) => `listen l${place % LISTENS} evil.*.${place % LISTENS}.# rewind=600000`),
  },
  {
    name: 'resume-loop',
    does: 'fills the log and listens to 128 patterns since an old position, again and again',
    fills: ['inbox', 'outbox', 'log'],
    attack: async (client) =>
      await client.repeat(async () => {
        let position = ''
        const connection = await client.open({
          onMessage: (header) => {
            position ||= /^ok \S+ position=(\S+)/.exec(header)?.[1] ?? ''
          },
        })
        await client.send(connection, 'listen p evil.first')
        await fillLog(client, connection)
        while (position === '' && !connection.hasEnded) await client.sleep(10)
        await flood(client, connection, (place) => `listen s${place % LISTENS} #.${place % LISTENS} since=${position}`)
      }),
  },
  {
    name: 'unread-subscriber',
    does: 'listens to a key that it publishes large messages to on another connection, and never reads',
    fills: ['inbox', 'outbox', 'log'],
    connections: 2,
    attack: async (client) => {
      const listening = client.repeat(async () => {
        const connection = await client.open()
        await client.send(connection, `listen u evil.busy.${client.index}`)
        connection.pause()
        await connection.ended
      })
      const publishing = repeating(() => `publish - evil.busy.${client.index}\n${BUSY_PAYLOAD}`)(client)
      await Promise.all([listening, publishing])
    },
  },
  {
    name: 'unread-answers',
    does: 'asks for history and presence and never reads an answer',
    fills: ['inbox', 'outbox', 'log'],
    attack: async (client) =>
      await client.repeat(async () => {
        const connection = await client.open()
        await fillLog(client, connection)
        connection.pause()
        await flood(client, connection, (place) =>
          place % 2 === 0
            ? `history u${place % 1_000} evil.log last=1000`
            : `presence u${place % 1_000} evil.log op=get`,
        )
      }),
  },
  {
    name: 'slow-resume',
    does: 'reads 200 kB per second of messages that come faster, and resumes whenever it is closed',
    fills: ['inbox', 'outbox', 'log'],
    connections: 2,
    attack: async (client) => {
      let position = ''
      const listening = client.repeat(async () => {
        const connection = await client.open({
          onMessage: (header) => {
            position = /^message \S+ ([^ -]\S*)/.exec(header)?.[1] ?? position
          },
        })
        const since = position === '' ? '' : ` since=${position}`
        await client.send(connection, `listen s evil.slow.${client.index}${since}`)
        await readSlowly(client, connection)
      })
      const publishing = client.repeat(async () => {
        const connection = await client.open()
        await flood(client, connection, () => `publish - evil.slow.${client.index}\n${RESUMED_PAYLOAD}`)
      })
      await Promise.all([listening, publishing])
    },
  },
]

/** Fills the log, then sends one request after the other. */
function reading(messageOf: (place: number) => string): (client: Attacker) => Promise<void> {
  return async (client) =>
    await client.repeat(async () => {
      const connection = await client.open()
      await fillLog(client, connection)
      await flood(client, connection, messageOf)
    })
}

async function fillLog(client: Attacker, connection: RawConnection): Promise<void> {
  for (let place = 0; place < LOGGED_MESSAGES && !connection.hasEnded; place++) {
    await client.send(connection, `publish - evil.log${place % 4 === 0 ? '' : `.${place % LISTENS}`}\n{"n":${place}}`)
  }
}

/** Reads in turns that are as far apart as the rate asks for. */
async function readSlowly(client: Attacker, connection: RawConnection): Promise<void> {
  let allowedBytes = connection.receivedBytes
  while (!connection.hasEnded) {
    connection.pause()
    await client.sleep(SLOW_STEP_MS)
    allowedBytes += (SLOW_BYTES_PER_SECOND * SLOW_STEP_MS) / 1_000
    connection.resume()
    await client.sleep(1)
    // One read may bring more than a turn's share; the next turns wait for it.
    while (connection.receivedBytes > allowedBytes && !connection.hasEnded) {
      connection.pause()
      await client.sleep(SLOW_STEP_MS)
      allowedBytes += (SLOW_BYTES_PER_SECOND * SLOW_STEP_MS) / 1_000
    }
  }
}
