import type { AttackCase } from '../attack-case.js'
import { flood, repeating } from './messages.js'

const MAX_PAYLOAD_BYTES = 262_144
const LARGEST = 'x'.repeat(MAX_PAYLOAD_BYTES)
/** Guesses at the message ids of honest publishers, around the present. */
const GUESSED_IDS = 2_000
const IMPATIENT_CONNECTIONS = 5
const FIRST_HONEST_SEQ = 100_000_001

/** Publishes: many, large, and with the ids of others. */
export const publishCases: readonly AttackCase[] = [
  {
    name: 'publish-flood',
    does: 'publishes messages of two bytes and reads the answers',
    fills: ['inbox', 'log'],
    attack: repeating((place) => `publish p${place % 1_000} evil.tiny\n{}`),
  },
  {
    name: 'publish-unacked',
    does: 'publishes messages of two bytes without asking for an answer',
    fills: ['inbox', 'log'],
    attack: repeating(() => 'publish - evil.tiny\n{}'),
  },
  {
    name: 'publish-large',
    does: 'publishes the largest payloads',
    fills: ['inbox', 'message', 'log'],
    attack: repeating(() => `publish - evil.large\n${LARGEST}`),
  },
  {
    name: 'publish-new-keys',
    does: 'publishes every message to a key that was never used',
    fills: ['inbox', 'log'],
    attack: repeating((place) => `publish - evil.new.${place.toString(36)}.${Math.random().toString(36)}\n{}`),
  },
  {
    name: 'publish-wide-keys',
    does: 'publishes to keys of 100 words',
    fills: ['inbox', 'log'],
    attack: repeating((place) => `publish - w${place}${'.a'.repeat(99)}\n{}`),
  },
  {
    name: 'id-collisions',
    does: 'publishes to keys of its own with the message ids that honest publishers are about to use',
    fills: ['inbox', 'log', 'messageIds'],
    attack: repeating((place) => `publish - evil.ids id=tick-${FIRST_HONEST_SEQ + (place % GUESSED_IDS)}\n{}`),
  },
  {
    name: 'new-ids',
    does: 'publishes every message with a new message id of 64 characters',
    fills: ['inbox', 'log', 'messageIds'],
    attack: repeating(
      (place) => `publish - evil.ids id=${`${place}-${Math.random()}-`.replace('.', '').padEnd(64, 'i')}\n{}`,
    ),
  },
  {
    name: 'impatient-publishers',
    does: 'publishes on five connections, with ids and without, far beyond the broker, and never waits as it is told to',
    needs: 'slow-broker',
    fills: ['inbox'],
    connections: IMPATIENT_CONNECTIONS,
    attack: async (client) =>
      await client.hold(IMPATIENT_CONNECTIONS, async (connection) => {
        const name = `${client.index}-${connection}`
        const head = (place: number) =>
          connection % 2 === 0 ? `p${place} evil.${name} id=${name}-${place}` : `- evil.${name}`
        await flood(client, await client.open(), (place) => `publish ${head(place)}\n"${'x'.repeat(100)}"`)
      }),
  },
]
