import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { FakeVerifier } from '../../../test/fake-verifier.js'
import type { Identity } from './identity.js'
import { PacedVerifier } from './paced-verifier.js'

const IDENTITY: Identity = { userId: 'ada', grants: [] }

/** Counts the verifications that were started. */
class CountingVerifier extends FakeVerifier {
  startedCount = 0

  override verify(token: string): Promise<Identity> {
    this.startedCount++
    return super.verify(token)
  }
}

it('starts few verifications per turn of the event loop, and all in the end', async () => {
  const verifier = new CountingVerifier({ good: IDENTITY })
  const paced = new PacedVerifier(verifier, 10_000)
  const verified = Array.from({ length: 100 }, () => paced.verify('good'))
  expect(verifier.startedCount).toBe(8)
  await nextTurn()
  expect(verifier.startedCount).toBeLessThanOrEqual(16)
  expect(await Promise.all(verified)).toEqual(Array.from({ length: 100 }, () => IDENTITY))
})

it('does not let tokens that wait for a key hold up others', async () => {
  const verifier = new CountingVerifier({ good: IDENTITY })
  verifier.isSlow = true
  const paced = new PacedVerifier(verifier, 10_000)
  const slow = Array.from({ length: 20 }, () => paced.verify('good'))
  while (verifier.startedCount < 20) await nextTurn()
  verifier.isSlow = false
  expect(await paced.verify('good')).toEqual(IDENTITY)
  paced.close()
  await Promise.all(slow)
})

it('refuses a token that has waited too long', async () => {
  const paced = new PacedVerifier(new FakeVerifier({ good: IDENTITY }), -1)
  await expect(paced.verify('good')).rejects.toMatchObject({ code: 'E_RATE_LIMIT', retryable: true })
})
