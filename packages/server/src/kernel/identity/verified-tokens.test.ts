import { expect, it } from 'vitest'
import { digestOf, VerifiedTokens } from './verified-tokens.js'

const ANN = { userId: 'ann', grants: [], expiresAtMs: 2_000 }
const DIGEST = digestOf('token')

function remembering(maxKeptBytes?: number): VerifiedTokens {
  const tokens = new VerifiedTokens(maxKeptBytes)
  tokens.set(DIGEST, ANN, 500, 1, 5)
  return tokens
}

it('gives the same identity again, until the token ends', () => {
  const tokens = remembering()
  expect(tokens.get(DIGEST, 1_000, 1)).toBe(ANN)
  expect(tokens.get(DIGEST, 1_999, 1)).toBe(ANN)
  expect(tokens.get(DIGEST, 2_000, 1)).toBeUndefined()
  expect(tokens.keptBytes).toBe(0)
})

it('gives none while the token is not valid yet, as after a clock was set back', () => {
  const tokens = remembering()
  expect(tokens.get(DIGEST, 499, 1)).toBeUndefined()
  expect(tokens.get(DIGEST, 500, 1)).toBe(ANN)
})

it('forgets what other keys have verified', () => {
  const tokens = remembering()
  expect(tokens.get(DIGEST, 1_000, 2)).toBeUndefined()
  expect(tokens.get(DIGEST, 1_000, 1)).toBeUndefined()
})

it('knows no other token', () => {
  expect(remembering().get(digestOf('Token'), 1_000, 1)).toBeUndefined()
})

it('forgets those that were used the longest ago, and never keeps more bytes than it may', () => {
  const tokens = remembering(5_000)
  for (let number = 0; number < 100; number++) {
    expect(tokens.get(DIGEST, 1_000, 1)).toBe(ANN)
    tokens.set(digestOf(`${number}`), ANN, 0, 1, 20)
    tokens.set(digestOf(`${number}`), ANN, 0, 1, 20)
    expect(tokens.keptBytes).toBeLessThanOrEqual(5_000)
  }
  expect(tokens.get(digestOf('99'), 1_000, 1)).toBe(ANN)
  expect(tokens.get(digestOf('0'), 1_000, 1)).toBeUndefined()
  tokens.set(digestOf('large'), ANN, 0, 1, 5_000)
  expect(tokens.get(digestOf('large'), 1_000, 1)).toBeUndefined()
  expect(tokens.keptBytes).toBeLessThanOrEqual(5_000)
})
