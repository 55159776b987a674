// Fuzzes keys, patterns, matching and containment.
// Usage: npx tsc -b packages/client && node packages/client/fuzz/matcher.mjs [--seconds 60] [--seed N]
import assert from 'node:assert/strict'
import { contains, isKey, isPattern, matches } from '../dist/protocol/index.js'
import { fuzz } from './fuzz.mjs'

const WORDS = ['a', 'b', 'ab', '', 'é', '\u{1f642}', 'z']
const WILDCARDS = ['*', '#', '#', '*.#', '#.*']
const encoder = new TextEncoder()

await fuzz('matcher', (random) => {
  const kind = random.below(10)
  if (kind === 0) return checkText(random)
  const pattern = kind === 1 ? adversarialPattern(random) : randomPattern(random, 1 + random.below(kind < 4 ? 60 : 7))
  const outer = random.below(2) === 0 ? mutatePattern(random, pattern) : randomPattern(random, 1 + random.below(7))
  if (!isPattern(pattern) || !isPattern(outer)) return ['pattern is too long']

  const isContained = contains(outer, pattern)
  const seen = [isContained ? 'contained' : 'not contained']
  for (let count = 0; count < 4; count++) {
    const key = count === 0 ? randomKey(random) : keyFor(random, pattern)
    if (!isKey(key)) continue
    const isMatch = matches(pattern, key)
    assert.equal(isMatch, referenceMatches(pattern, key), `matches(${quote(pattern)}, ${quote(key)})`)
    assert.equal(contains(pattern, key), isMatch, `contains(${quote(pattern)}, ${quote(key)})`)
    const isOuterMatch = matches(outer, key)
    assert.equal(isOuterMatch, referenceMatches(outer, key), `matches(${quote(outer)}, ${quote(key)})`)
    if (isMatch && !isOuterMatch)
      assert.equal(isContained, false, `contains(${quote(outer)}, ${quote(pattern)}): ${quote(key)}`)
    seen.push(isMatch ? 'match' : 'no match')
  }
  return seen
})

/** Validation against its definition [P-3.1], [P-3.3], character by character. */
function checkText(random) {
  const text = Array.from({ length: random.below(random.below(20) === 0 ? 300 : 8) }, () =>
    randomCharacter(random),
  ).join('')
  const isText =
    text.isWellFormed() &&
    encoder.encode(text).length >= 1 &&
    encoder.encode(text).length <= 255 &&
    [...text].every(isAllowed)
  const words = text.split('.')
  const isExpectedKey = isText && !/[*#]/.test(text)
  const isExpectedPattern = isText && words.every((word) => word === '*' || word === '#' || !/[*#]/.test(word))
  assert.equal(isKey(text), isExpectedKey, `isKey(${quote(text)})`)
  assert.equal(isPattern(text), isExpectedPattern, `isPattern(${quote(text)})`)
  return [isExpectedKey ? 'key' : isExpectedPattern ? 'pattern' : 'neither']
}

function isAllowed(character) {
  const code = character.codePointAt(0)
  return code > 0x20 && (code < 0x7f || code > 0x9f)
}

function randomCharacter(random) {
  const kind = random.below(12)
  if (kind < 6) return random.pick(['a', 'b', '.', '.', '*', '#'])
  if (kind < 9) return String.fromCharCode(0x21 + random.below(94))
  if (kind === 9) return String.fromCharCode(random.below(0x100))
  return kind === 10 ? String.fromCodePoint(random.below(0x110000)) : String.fromCharCode(random.below(0x10000))
}

function randomPattern(random, length) {
  return Array.from({ length }, () => random.pick(random.below(2) === 0 ? WORDS : WILDCARDS)).join('.')
}

/** A pattern that explodes in matchers that backtrack, and in automata that are made deterministic. */
function adversarialPattern(random) {
  const unit = random.pick(['#.a.', '#.', '#.*.', 'a.#.', '#.a.*.', '#.a.b.', '*.', '#.a.#.'])
  const end = random.pick(['a', 'b', '*', '#', ''])
  return `${unit.repeat(1 + random.below(Math.floor(250 / unit.length)))}${end}`
}

function mutatePattern(random, pattern) {
  const words = pattern.split('.')
  for (let count = 1 + random.below(3); count > 0; count--) {
    const at = random.below(words.length)
    const kind = random.below(4)
    if (kind === 0) words.splice(at, 1)
    else if (kind === 1) words.splice(at, 0, random.pick(WILDCARDS))
    else if (kind === 2) words[at] = random.pick(WILDCARDS)
    else words[at] = random.pick(WORDS)
  }
  return words.join('.')
}

function randomKey(random) {
  return Array.from({ length: 1 + random.below(random.below(10) === 0 ? 120 : 7) }, () => random.pick(WORDS)).join('.')
}

/** A key that the pattern matches, in most cases. */
function keyFor(random, pattern) {
  const words = pattern.split('.').flatMap((word) => {
    if (word === '#') return Array.from({ length: random.below(4) }, () => random.pick(WORDS))
    return [word === '*' ? random.pick(WORDS) : word]
  })
  if (random.below(3) === 0 && words.length > 0) words[random.below(words.length)] = random.pick(WORDS)
  return words.join('.')
}

/** AMQP's definition as a table: reachable[n] says whether the words so far match the first n words of the pattern. */
function referenceMatches(pattern, key) {
  const words = pattern.split('.')
  const skip = (reachable) => {
    for (let at = 0; at < words.length; at++) if (words[at] === '#' && reachable[at]) reachable[at + 1] = true
    return reachable
  }
  let reachable = skip([true, ...words.map(() => false)])
  for (const keyWord of key.split('.')) {
    const next = words.map((word, at) => word === '#' && reachable[at])
    next.push(false)
    for (let at = 0; at < words.length; at++) {
      if (reachable[at] && words[at] !== '#' && (words[at] === '*' || words[at] === keyWord)) next[at + 1] = true
    }
    reachable = skip(next)
  }
  return reachable[words.length]
}

function quote(text) {
  return JSON.stringify(text)
}
