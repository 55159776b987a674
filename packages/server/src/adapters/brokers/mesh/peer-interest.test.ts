import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { matches } from 'webmq-client/protocol'
import { PeerInterest } from './peer.js'

const PEERS = ['a', 'b', 'c'].map((nodeId) => ({ nodeId }))
const PATTERNS = ['x', 'x.*', 'x.#', '#', '*.y', 'x.y', '#.y']
const KEYS = ['x', 'x.y', 'x.z', 'y', 'x.y.z']

describe('PeerInterest', () => {
  it('finds each peer once that listens with any pattern that matches', () => {
    const change = fc.record({ peer: fc.constantFrom(...PEERS), pattern: fc.constantFrom(...PATTERNS) })
    fc.assert(
      fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
        const interest = new PeerInterest<{ readonly nodeId: string }>()
        const told = new Set<string>()
        for (const { peer, pattern } of changes) {
          const name = `${peer.nodeId} ${pattern}`
          if (told.delete(name)) interest.remove(pattern, peer)
          else {
            told.add(name)
            interest.add(pattern, peer)
          }
          for (const key of KEYS) {
            const expected = PEERS.filter(({ nodeId }) =>
              PATTERNS.some((pattern) => told.has(`${nodeId} ${pattern}`) && matches(pattern, key)),
            )
            expect(interest.match(key)).toEqual(expected)
          }
        }
        expect(interest.patternCount).toBe(new Set([...told].map((name) => name.split(' ')[1])).size)
      }),
    )
  })

  it('gives the same array for the same peers, whatever the pattern', () => {
    const interest = new PeerInterest<{ readonly nodeId: string }>()
    const [a, b] = PEERS as [{ nodeId: string }, { nodeId: string }]
    for (const pattern of ['k.1', 'k.2', '*.1']) interest.add(pattern, a)
    for (const pattern of ['k.1', 'k.2']) interest.add(pattern, b)
    expect(interest.match('k.1')).toBe(interest.match('k.2'))
    expect(interest.match('other.1')).toEqual([a])
  })

  it('does not take a node that has come back for what it was before', () => {
    const interest = new PeerInterest<{ readonly nodeId: string }>()
    const [before, after] = [{ nodeId: 'a' }, { nodeId: 'a' }]
    interest.add('k', before)
    interest.remove('k', before)
    interest.add('k', after)
    expect(interest.match('k')[0]).toBe(after)
  })
})
