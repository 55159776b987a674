import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isKey, matches } from 'webmq-client/protocol'
import { NatsSubjects, subscriptionPatternsOf } from './subjects.js'

const subjects = new NatsSubjects('webmq')

/** Words with all that NATS or the escaping could trip over. */
const word = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      '',
      'a',
      'b',
      '>',
      '$',
      '%',
      '%25',
      '%3E',
      '"',
      '\\',
      '$node',
      '>>',
      'é',
      '\u{a0}',
      '\u{1f600}',
    ),
  },
  { weight: 1, arbitrary: fc.string({ unit: fc.constantFrom(...'ab>$%"\\25EC'), maxLength: 4 }) },
)
const keys = fc
  .array(word, { minLength: 1, maxLength: 6 })
  .map((words) => words.join('.'))
  .filter((key) => isKey(key))
const patterns = fc
  .array(fc.oneof(word, fc.constantFrom('*', '#')), { minLength: 1, maxLength: 5 })
  .map((words) => words.join('.'))
  .filter((pattern) => pattern !== '')

/** The key of a subject; asked twice, as it may be remembered. */
function keyOf(subject: string): string | undefined {
  const keys = [1, 2].map(() => subjects.keyOf(subject))
  expect(keys[0]).toBe(keys[1])
  return keys[0]
}

/** What the server does: `*` for one token, `>` at the end for one or more. */
function subjectMatches(pattern: string, subject: string): boolean {
  const tokens = subject.split('.')
  const wanted = pattern.split('.')
  for (const [index, token] of wanted.entries()) {
    if (token === '>' && index === wanted.length - 1) return tokens.length > index
    if (index >= tokens.length || (token !== '*' && token !== tokens[index])) return false
  }
  return tokens.length === wanted.length
}

describe('NatsSubjects', () => {
  it('writes ordinary keys as they are', () => {
    expect(subjects.ofKey('chat.42.message')).toBe('webmq.chat.42.message')
    expect(subjects.ofKey('größe')).toBe('webmq.größe')
    expect(subjects.ofKey('a>.b$.-_=+')).toBe('webmq.a>.b$.-_=+')
  })

  it('writes what NATS does not take in another way', () => {
    expect(subjects.ofKey('.a..')).toBe('webmq.%.a.%.%')
    expect(subjects.ofKey('>.a')).toBe('webmq.%3E.a')
    expect(subjects.ofKey('$node.$x')).toBe('webmq.%24node.$x')
    expect(subjects.ofKey('100%')).toBe('webmq.100%25')
  })

  it('finds the key again, and gives different keys different subjects', () => {
    fc.assert(
      fc.property(keys, keys, (key, other) => {
        const subject = subjects.ofKey(key)
        expect(keyOf(subject)).toBe(key)
        expect(subjects.ofKey(other) === subject).toBe(other === key)
      }),
      { numRuns: 2_000 },
    )
  })

  it('makes only subjects that a NATS server takes', () => {
    fc.assert(
      fc.property(keys, (key) => {
        const tokens = subjects.ofKey(key).split('.')
        for (const token of tokens) expect(token).toMatch(/^[^ \t\r\n*]+$/)
        expect(tokens).not.toContain('>')
        expect(subjects.ofKey(key).length).toBeLessThanOrEqual('webmq.'.length + 3 * key.length)
      }),
    )
  })

  it('finds no key for what is not the subject of one', () => {
    for (const subject of [
      'other.a',
      'webmq',
      'webmq.',
      'webmq.%41',
      'webmq.a%',
      'webmq.a"',
      'webmq.$x',
      'webmq.a*b',
      'webmq.%2E',
    ]) {
      expect(keyOf(subject)).toBeUndefined()
    }
    expect(keyOf(`webmq.${'a'.repeat(256)}`)).toBeUndefined()
  })

  it('has subjects for nodes that no key has', () => {
    const subject = subjects.ofNode('0123456789abcdef')
    expect(subjects.isOwn(subject)).toBe(true)
    fc.assert(fc.property(keys, (key) => !subjects.isOwn(subjects.ofKey(key))))
  })
})

function hasWordsBehindHash(pattern: string): boolean {
  const words = pattern.split('.')
  return words.includes('#') && words.slice(words.indexOf('#')).some((word) => word !== '*' && word !== '#')
}

describe('subscriptionPatternsOf', () => {
  it.each([
    ['a.b', ['webmq.a.b']],
    ['a.*.c', ['webmq.a.*.c']],
    ['#', ['webmq.>']],
    ['#.#', ['webmq.>']],
    ['a.#', ['webmq.a', 'webmq.a.>']],
    ['a.*.#', ['webmq.a.>']],
    ['a.#.*', ['webmq.a.>']],
    ['a.#.*.#.b', ['webmq.a.*.>']],
    ['#.b', ['webmq.>']],
    ['.#', ['webmq.%', 'webmq.%.>']],
    ['>.*.#', ['webmq.%3E.>']],
  ])('of %s', (pattern, expected) => {
    expect(subscriptionPatternsOf(pattern).map((each) => subjects.ofSubscription(each))).toEqual(expected)
  })

  it('brings every key that the pattern matches, and no other without words behind a #', () => {
    fc.assert(
      fc.property(patterns, keys, (pattern, key) => {
        const patterns = subscriptionPatternsOf(pattern)
        const comes = patterns.filter((each) => subjectMatches(subjects.ofSubscription(each), subjects.ofKey(key)))
        // A subscription pattern matches exactly the keys that its subject brings.
        expect(comes).toEqual(patterns.filter((each) => matches(each, key)))
        expect(comes.length).toBeLessThanOrEqual(1)
        if (matches(pattern, key)) expect(comes.length).toBe(1)
        else if (!hasWordsBehindHash(pattern)) expect(comes.length).toBe(0)
      }),
      { numRuns: 5_000 },
    )
  })
})
