import { describe, expect, it } from 'vitest'
import { checkWorkload, readWorkload, WORKLOADS } from './workload.js'

const { name: _, ...VALID } = WORKLOADS.find(({ name }) => name === 'chat') ?? { name: '' }

describe('a workload', () => {
  it.each(WORKLOADS.map(({ name }) => name))('of the bench is valid as a file: %s', (name) => {
    const workload = readWorkload(name)
    expect(checkWorkload({ ...workload }, 'file.json')).toEqual(workload)
  })

  it.each([
    [[], /not an object/],
    [null, /not an object/],
    [{ ...VALID, keys: 10 }, /either 'keys' or 'listenersPerKey'/],
    [{ ...VALID, listenersPerKey: undefined }, /either 'keys' or 'listenersPerKey'/],
    [{ ...VALID, surprise: 1 }, /'surprise' is unknown/],
    [{ ...VALID, payloadBytes: -1 }, /'payloadBytes' must be a number from 0/],
    [{ ...VALID, payloadBytes: '100' }, /'payloadBytes'/],
    [{ ...VALID, loggedShare: 1.1 }, /'loggedShare' must be a number from 0 to 1/],
    [{ ...VALID, clientPublishesPerSecond: Number.NaN }, /'clientPublishesPerSecond'/],
    [{ ...VALID, sessionSeconds: undefined }, /'sessionSeconds'/],
    [{ ...VALID, split: 'both' }, /'split' must be keys or copies/],
  ])('is refused: %j', (value, reason) => {
    expect(() => checkWorkload(value, 'file.json')).toThrow(reason)
  })

  it.each(['chess', 'constructor', '/no/such/file.json'])('is not %s', (text) => {
    expect(() => readWorkload(text)).toThrow(/there is no workload|could not be read/)
  })
})
