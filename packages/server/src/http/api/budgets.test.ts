import { expect, it } from 'vitest'
import { type Actor, clientOverHttp } from '../../identity/actor.js'
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
