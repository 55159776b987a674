import { describe, expect, it } from 'vitest'
import { historyOf } from 'webmq-conformance'
import { partitionOfWords } from '../../ports/partition-of.js'
import { PartitionMap } from './partition-map.js'

const COUNT = 8

function mapOf(words: number, ...rules: readonly string[]): PartitionMap {
  return new PartitionMap({ count: COUNT, words }, historyOf(...rules).history)
}

const ALL = [0, 1, 2, 3, 4, 5, 6, 7]
const of = (words: string) => partitionOfWords(words, COUNT)

describe('which partitions a pattern concerns', () => {
  it('is one for literal first words, and all for a wildcard in them', () => {
    const map = mapOf(1, '#=100')
    expect(map.ofPattern('chat.#')).toEqual([of('chat')])
    expect(map.ofPattern('chat')).toEqual([of('chat')])
    for (const pattern of ['#', '*.a', '#.a']) expect(map.ofPattern(pattern)).toEqual(ALL)
    expect(mapOf(2, '#=100').ofPattern('chat.#')).toEqual(ALL)
    expect(mapOf(2, '#=100').ofPattern('chat.7.#')).toEqual([of('chat.7')])
  })

  it('is no more than the rules of the log have', () => {
    const map = mapOf(1, 'chat.#=100', 'news.#=100')
    expect(map.ofPattern('other.#')).toEqual([])
    expect(map.ofPattern('#')).toEqual([...new Set([of('chat'), of('news')])].sort())
    expect(map.ofPattern('$webmq.presence')).toEqual([])
    expect(map.ofPatterns(['chat.a', 'other'])).toEqual([of('chat')])
  })

  it('is none for a key that is not logged', () => {
    const map = mapOf(1, 'chat.#=100')
    expect(map.ofKey('chat.a')).toBe(of('chat'))
    expect(map.ofKey('other')).toBeUndefined()
    expect(map.ofKey('$webmq.x')).toBeUndefined()
  })

  it('leaves to the base what may not be logged', () => {
    const map = mapOf(1, 'chat.#=100')
    expect(map.hasUnlogged('chat.a.*')).toBe(false)
    for (const pattern of ['#', '*.a', '$webmq.x']) expect(map.hasUnlogged(pattern)).toBe(true)
  })
})
