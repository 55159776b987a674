import { expect, it } from 'vitest'
import { ANONYMOUS } from '../identity/index.js'
import { askToListen } from './opening.js'
import type { Session } from './session.js'

/** A session that may listen to everything, with hooks that answer at once. */
function sessionAsking(asked: string[]): Session {
  const hooks = { listen: (_session: unknown, _op: string, pattern: string) => void asked.push(pattern) }
  const session = {
    door: 'sse',
    identity: ANONYMOUS,
    listens: { has: () => true },
    limits: { maxWords: 32 },
    services: { hooks, broker: { capabilities: { retained: true } } },
  }
  return session as unknown as Session
}

it('asks hooks that answer at once about however many patterns', () => {
  const patterns = Array.from({ length: 50_000 }, (_, index) => `a.${index}`)
  const asked: string[] = []
  expect(askToListen(sessionAsking(asked), { patterns, range: {}, hasMeta: false })).toBeUndefined()
  expect(asked).toEqual(patterns)
})
