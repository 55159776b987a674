import { expect, it } from 'vitest'
import { OPTIONS } from '../../doors/options/table.js'
import { OVERRIDABLE_LIMITS, parseLimitOverrides } from './limit-overrides.js'

it('reads limits', () => {
  expect(parseLimitOverrides({ limits: { maxPublishesPerSecond: 10, maxListensPerConnection: 0 } })).toEqual({
    maxPublishesPerSecond: 10,
    maxListensPerConnection: 0,
  })
  expect(parseLimitOverrides({ limits: {} })).toEqual({})
})

it.each([undefined, null, 'text', [], {}, { grants: [] }])('finds none in %j', (claim) => {
  expect(parseLimitOverrides(claim)).toBeUndefined()
})

it.each([
  ['webmq.limits', null],
  ['webmq.limits', []],
  ['webmq.limits', 10],
  ['webmq.limits', { maxPublishPerSecond: 10 }],
  ['webmq.limits', JSON.parse('{ "__proto__": 1 }')],
  ['webmq.limits.maxPublishesPerSecond', { maxPublishesPerSecond: 0 }],
  ['webmq.limits.maxPublishesPerSecond', { maxPublishesPerSecond: -1 }],
  ['webmq.limits.maxPublishesPerSecond', { maxPublishesPerSecond: 1.5 }],
  ['webmq.limits.maxPublishesPerSecond', { maxPublishesPerSecond: '10' }],
  ['webmq.limits.maxPublishesPerSecond', { maxPublishesPerSecond: null }],
  ['webmq.limits.maxPublishesPerSecond', { maxPublishesPerSecond: JSON.parse('1e999') }],
  ['webmq.limits.maxListensPerConnection', { maxPublishesPerSecond: 1, maxListensPerConnection: 1_000_001 }],
])('refuses a malformed %s', (where, limits) => {
  expect(() => parseLimitOverrides({ limits })).toThrow(
    expect.objectContaining({ code: 'E_TOKEN_INVALID', message: expect.stringContaining(`${where} is not`) }),
  )
})

it.each(Object.entries(OVERRIDABLE_LIMITS))('%s is an option with the same range', (name, range) => {
  expect(OPTIONS.find((option) => option.name === name)).toMatchObject({ range })
})
