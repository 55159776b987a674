import { expect, it } from 'vitest'
import { type Actor, clientOverHttp } from '../../kernel/identity/actor.js'
import { Budgets } from './budgets.js'

const ofUser = (userId: string) => clientOverHttp({ userId, grants: [] }, '::1')
const ofAddress = (address: string) => clientOverHttp({ grants: [] }, address)

it('refuse a client that has caused too much work, until it has its share again', () => {
  let nowMs = 0
  const budgets = new Budgets({ workPerSecond: 1_000, workBurst: 500 }, () => nowMs)
  const begin = (caller: Actor) => () => budgets.begin(caller)
  for (let count = 0; count < 3; count++) budgets.begin(ofUser('ann'))
  expect(begin(ofUser('ann'))).toThrow(expect.objectContaining({ code: 'E_RATE_LIMIT', retryable: true }))
  expect(begin(ofUser('bob'))).not.toThrow()
  nowMs += 100
  expect(begin(ofUser('ann'))).not.toThrow()
  nowMs += 60_000
  budgets.charge(ofUser('ann'), 100_000)
  expect(begin(ofUser('ann')), 'bytes count too').toThrow('too much work')
  nowMs += 60_000
  budgets.chargeMessages(ofUser('ann'), 1_000)
  expect(begin(ofUser('ann')), 'messages count too').toThrow('too much work')
})

it('are those of an address for clients without a user', () => {
  const budgets = new Budgets({ workPerSecond: 1, workBurst: 1 }, () => 0)
  budgets.begin(ofAddress('203.0.113.7'))
  expect(() => budgets.begin(ofAddress('203.0.113.7'))).toThrow('too much work')
  expect(() => budgets.begin(ofAddress('203.0.113.8'))).not.toThrow()
})

// One customer has 2^64 addresses, each of which had a budget of its own.
it('are those of a network for clients without a user behind IPv6', () => {
  const budgets = new Budgets({ workPerSecond: 1, workBurst: 1 }, () => 0)
  budgets.begin(ofAddress('2001:db8:1:2::1'))
  expect(() => budgets.begin(ofAddress('2001:db8:1:2::2'))).toThrow('too much work')
  expect(() => budgets.begin(ofAddress('2001:db8:1:3::1'))).not.toThrow()
})

// The oldest was forgotten: whoever came with 10,000 other names caused the burst again.
it('keep debts when there are too many clients: those that come then share one', () => {
  let nowMs = 0
  const budgets = new Budgets({ workPerSecond: 1_000, workBurst: 200 }, () => nowMs)
  for (let user = 0; user < 10_000; user++) budgets.charge(ofUser(`${user}`), 100_000)
  budgets.begin(ofUser('other'))
  budgets.charge(ofUser('another'), 100)
  expect(() => budgets.begin(ofUser('a third'))).toThrow('too much work')
  expect(() => budgets.begin(ofUser('0'))).toThrow('too much work')
  nowMs = 60_000
  budgets.begin(ofUser('other'))
  budgets.begin(ofUser('another'))
})
