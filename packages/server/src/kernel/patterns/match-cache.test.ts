import { describe, expect, it } from 'vitest'
import type { GroupId } from '../ports/transport.js'
import { MatchCache } from './match-cache.js'

const groups = (...numbers: number[]) => numbers as GroupId[]

describe('MatchCache', () => {
  it('never holds more keys than it may, however many are asked for', () => {
    const cache = new MatchCache(10, 1_000)
    for (let index = 0; index < 1_000; index++) {
      cache.set(`key.${index}`, groups(1))
      expect(cache.size).toBeLessThanOrEqual(10)
    }
  })

  it('holds fewer keys when each matches many groups', () => {
    const cache = new MatchCache(1_000, 100)
    for (let index = 0; index < 100; index++) cache.set(`key.${index}`, groups(...Array(25).keys()))
    expect(cache.size).toBeLessThanOrEqual(4)
    expect(cache.get('key.99')).toHaveLength(25)
  })

  it('keeps a key that is asked for while others pass through', () => {
    const cache = new MatchCache(10, 1_000)
    const hot = groups(7)
    cache.set('hot', hot)
    for (let index = 0; index < 100; index++) {
      cache.set(`cold.${index}`, groups(1))
      expect(cache.get('hot')).toBe(hot)
    }
  })

  it('forgets one key or all, of either generation', () => {
    const cache = new MatchCache(4, 1_000)
    for (const key of ['a', 'b', 'c']) cache.set(key, groups(1))
    cache.delete('a')
    cache.delete('c')
    expect([cache.get('a'), cache.get('b'), cache.get('c')]).toEqual([undefined, groups(1), undefined])
    cache.clear()
    expect(cache.size).toBe(0)
  })
})
