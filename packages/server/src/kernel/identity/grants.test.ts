import { describe, expect, it } from 'vitest'
import { explainAccess, mayEnter, mayListen, mayPublish, parseGrants } from './access.js'
import { ANONYMOUS, type Identity } from './identity.js'

const ALICE: Identity = {
  userId: 'alice',
  grants: [
    { keys: ['chat.*.#', 'news'], allow: ['listen', 'publish'] },
    { keys: ['prices.#'], allow: ['listen'] },
    { keys: ['orders.*'], allow: ['publish'] },
    { keys: ['chat.1'], allow: ['presence'] },
  ],
}

describe('mayListen', () => {
  it.each([
    'chat.*.#',
    'chat.1',
    'chat.*.message',
    'chat.#.message.x.*.#.y.*',
    'news',
    'prices',
    'prices.*.eur',
    'prices.#',
  ])('grants %s, every key of which one grant covers', (pattern) => {
    expect(mayListen(ALICE, pattern)).toBe(true)
  })

  it.each(['#', 'chat.#', '*.1', '#.news', 'news.#', '*', 'orders.1', 'orders.*', 'other'])(
    'does not grant %s, which reaches beyond or is not listed: that they overlap is not enough',
    (pattern) => {
      expect(mayListen(ALICE, pattern)).toBe(false)
    },
  )
})

describe('mayPublish', () => {
  it.each(['chat.1', 'chat.1.message', 'news', 'orders.7'])('grants %s', (key) => {
    expect(mayPublish(ALICE, key)).toBe(true)
  })

  it.each(['chat', 'news.x', 'prices.eur', 'orders', 'orders.7.x', 'other'])('does not grant %s', (key) => {
    expect(mayPublish(ALICE, key)).toBe(false)
  })

  it('answers the same however often it is asked, for however many keys', () => {
    for (let round = 0; round < 2; round++) {
      for (let index = 0; index < 1000; index++) {
        expect(mayPublish(ALICE, `orders.${index}`)).toBe(true)
        expect(mayPublish(ALICE, `other.${index}`)).toBe(false)
      }
    }
  })
})

describe('an identity', () => {
  it('without grants may do nothing', () => {
    const nobody: Identity = { userId: 'nobody', grants: [] }
    expect(mayListen(nobody, 'a')).toBe(false)
    expect(mayPublish(nobody, 'a')).toBe(false)
  })

  it('that is anonymous may do anything', () => {
    expect(mayListen(ANONYMOUS, '#')).toBe(true)
    expect(mayPublish(ANONYMOUS, 'a.b.c')).toBe(true)
    expect(ANONYMOUS.userId).toBeUndefined()
  })
})

describe('explainAccess', () => {
  it('names the grant that allows', () => {
    expect(explainAccess(ALICE, 'publish', 'chat.1')).toMatchObject({ isAllowed: true, grantedBy: 'chat.*.#' })
    expect(explainAccess(ALICE, 'listen', 'prices.*')).toMatchObject({ isAllowed: true, grantedBy: 'prices.#' })
  })

  it('says why not: what was looked at, and whether the other action would be allowed', () => {
    const { isAllowed, reason } = explainAccess(ALICE, 'publish', 'prices.eur')
    expect(isAllowed).toBe(false)
    expect(reason).toContain('none of chat.*.#, news, orders.*')
    expect(reason).toContain('prices.# covers it, but does not allow publish')
  })

  it('says when nothing is granted at all', () => {
    expect(explainAccess({ grants: [] }, 'listen', '#').reason).toBe('no grant allows listen at all')
  })

  it.each(['chat.1', 'prices.eur', 'orders.1', 'x'])('agrees with what it explains for %s', (subject) => {
    expect(explainAccess(ALICE, 'publish', subject).isAllowed).toBe(mayPublish(ALICE, subject))
    expect(explainAccess(ALICE, 'listen', subject).isAllowed).toBe(mayListen(ALICE, subject))
    expect(explainAccess(ALICE, 'presence', subject).isAllowed).toBe(mayEnter(ALICE, subject))
  })
})

describe('parseGrants', () => {
  it('reads grants', () => {
    const grants = [{ keys: ['chat.*.#', 'a'], allow: ['listen', 'publish'] }]
    expect(parseGrants({ grants })).toEqual(grants)
  })

  it('grants nothing without the claim', () => {
    expect(parseGrants(undefined)).toEqual([])
    expect(parseGrants({})).toEqual([])
    expect(parseGrants({ grants: [] })).toEqual([])
  })

  it('leaves alone what a later version may define', () => {
    expect(parseGrants({ grants: [{ keys: ['a'], allow: [], until: 5 }], limits: {} })).toEqual([
      { keys: ['a'], allow: [] },
    ])
  })

  it.each([
    [null, 'webmq is not an object'],
    ['chat.#', 'webmq is not an object'],
    [[], 'webmq is not an object'],
    [{ grants: {} }, 'webmq.grants is not a list'],
    [{ grants: ['chat.#'] }, 'webmq.grants[0] is not an object'],
    [{ grants: [{ allow: ['listen'] }] }, 'webmq.grants[0].keys is not a list'],
    [{ grants: [{ keys: 'chat.#', allow: ['listen'] }] }, 'webmq.grants[0].keys is not a list'],
    [{ grants: [{ keys: ['chat.#'] }] }, 'webmq.grants[0].allow is not a list'],
    [{ grants: [{ keys: [1], allow: [] }] }, 'webmq.grants[0].keys[0] is not a text'],
    [{ grants: [{ keys: ['a', 'ch*t'], allow: [] }] }, 'webmq.grants[0].keys[1]: '],
    [{ grants: [{ keys: [''], allow: [] }] }, 'webmq.grants[0].keys[0]: '],
    [{ grants: [{ keys: ['a b'], allow: [] }] }, 'webmq.grants[0].keys[0]: '],
    [{ grants: [{ keys: ['a'], allow: ['read'] }] }, 'webmq.grants[0].allow[0] is not one of listen, publish'],
    [{ grants: [{ keys: ['a'], allow: ['Listen'] }] }, 'webmq.grants[0].allow[0] is not one of'],
    [{ grants: [{ keys: ['a'], allow: ['toString'] }] }, 'webmq.grants[0].allow[0] is not one of'],
    [{ grants: [{ keys: [`${'a.'.repeat(32)}a`], allow: [] }] }, '33 words, at most 32 (maxWords)'],
    [{ grants: [{ keys: ['#.a.#.a.#.a.#'], allow: [] }] }, '4 #, at most 3 (maxHashes)'],
    [{ grants: [{ keys: Array.from({ length: 1001 }, () => 'a'), allow: [] }] }, 'contains 1001 patterns'],
  ])('does not obey half of the malformed claim %j', (claim, detail) => {
    expect(() => parseGrants(claim)).toThrow(expect.objectContaining({ code: 'E_TOKEN_INVALID' }))
    expect(() => parseGrants(claim)).toThrow(detail)
  })
})
