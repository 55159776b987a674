import type { Msg } from '@nats-io/transport-node'
import { expect, it } from 'vitest'
import { streamMessageOf } from './stream-message.js'

const messageOf = (reply: string) => streamMessageOf({ subject: 'a', data: new Uint8Array(), reply } as Msg)

const LEAD = '$JS.ACK.S.c.1.'
const TIME = '1800000000123456789'

it('reads what JetStream says of a message', () => {
  const expected = { sequence: 5, deliverySequence: 6, time: TIME, pendingCount: 7 }
  expect(messageOf(`${LEAD}5.6.${TIME}.7`)).toMatchObject(expected)
  expect(messageOf(`$JS.ACK.domain.account.S.c.1.5.6.${TIME}.7.token`)).toMatchObject(expected)
})

it.each([
  ['too few words', '5.6'],
  ['a short time', '5.6.1800.7'],
  ['no sequence', `.6.${TIME}.7`],
  ['a sequence that is no number', `5x.6.${TIME}.7`],
  ['a sequence that is not safe', `${'9'.repeat(20)}.6.${TIME}.7`],
  ['a word after the count', `5.6.${TIME}.7x`],
])('refuses a message with %s, also after one of the same consumer', (_, rest) => {
  messageOf(`${LEAD}5.6.${TIME}.7`)
  expect(() => messageOf(`${LEAD}${rest}`)).toThrow('without its sequence')
})
