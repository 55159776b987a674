import type { AttackCase } from '../attack-case.js'
import type { Attacker } from '../attacker.js'
import type { RawConnection } from '../raw-connection.js'

const LONG_ID = 'x'.repeat(65_536)
/** As long as a header may be, with options that no verb has. */
const LONG_OPTIONS = Array.from({ length: 180 }, (_, place) => `o${place}=${'v'.repeat(5)}`).join(' ')

const MALFORMED: readonly (string | Buffer)[] = [
  '',
  ' ',
  'listen',
  'listen  1 a',
  'publish 1',
  'listen 1 a since=',
  'history - a',
  'ping ping=1 ping=1',
  `listen ${'i'.repeat(37)} a`,
  'presence 1 a op=dance',
  Buffer.from([0xff, 0xfe, 0x00]),
]

/** Messages that break the protocol. */
export const messageCases: readonly AttackCase[] = [
  {
    name: 'malformed-messages',
    does: 'sends malformed messages until the server closes, and comes back',
    fills: ['inbox'],
    attack: repeating((place) => MALFORMED[place % MALFORMED.length] ?? ''),
  },
  {
    name: 'unknown-verbs',
    does: 'sends verbs that do not exist',
    fills: ['inbox'],
    attack: repeating((place) => `dance d${place % 1_000} some.key\nbody`),
  },
  {
    name: 'binary-verbs',
    does: 'sends the verbs of text as binary frames',
    fills: ['inbox'],
    attack: repeating((place) => Buffer.from([`listen b a.b`, `unlisten b a.b`, 'ping', 'auth b\nx'][place % 4] ?? '')),
  },
  {
    name: 'long-headers',
    does: 'sends requests with 180 unknown options, some with ids of 64 KiB, and comes back',
    fills: ['inbox'],
    attack: repeating((place) =>
      place % 50 === 49 ? `listen ${LONG_ID} a` : `unlisten u${place % 1_000} evil.none ${LONG_OPTIONS}`,
    ),
  },
  {
    name: 'verb-ping-flood',
    does: 'sends the verb ping and reads the answers',
    fills: ['inbox'],
    attack: repeating(() => 'ping'),
  },
]

/** Sends one message after the other on one connection, and opens another one when it ends. */
export function repeating(messageOf: (place: number) => string | Buffer): (client: Attacker) => Promise<void> {
  return async (client) =>
    await client.repeat(async () => {
      await flood(client, await client.open(), messageOf)
    })
}

/** Sends one message after the other until the connection ends. */
export async function flood(
  client: Attacker,
  connection: RawConnection,
  messageOf: (place: number) => string | Buffer,
): Promise<void> {
  for (let place = 0; !connection.hasEnded; place++) await client.send(connection, messageOf(place))
}
