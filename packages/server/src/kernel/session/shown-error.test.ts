import { expect, it, vi } from 'vitest'
import { decodeServerMessage, WebMQError } from 'webmq-client/protocol'
import { encodeRefusal, shownError } from './shown-error.js'

// Symptom: while the keys that verify tokens could not be fetched, each token of a stranger wrote an error with a stack. Cause:
// a failure of the server was logged each time, whoever caused it.
it('logs what a client causes again and again once per second', () => {
  const logger = { error: vi.fn() }
  const log = logger as unknown as Parameters<typeof shownError>[2]
  for (const error of [new WebMQError('E_INTERNAL'), new TypeError('a bug'), new WebMQError('E_BROKER_REFUSED')])
    for (let count = 0; count < 100; count++)
      expect(shownError(error, 's', log).code).toMatch(/^E_(INTERNAL|UNSUPPORTED)$/)
  expect(logger.error.mock.calls.map(([, message]) => message)).toEqual([
    'a message could not be handled',
    'the broker refused a request of a client',
  ])
})

it('encodes an answer with its own id, error and time, however many there were before', () => {
  const refused = (detail: string, retryAfterMs: number) =>
    Object.assign(new WebMQError('E_RATE_LIMIT', { detail }), { retryAfterMs })
  const [one, later, other] = [refused('one', 250), refused('one', 249), refused('other', 250)]
  for (const [error, id] of [[one, 'a'], [one, 'b'], [one], [later, 'c'], [other, 'd'], [one, 'e']] as const) {
    const { code, message, retryable, docs, retryAfterMs } = error
    const answer = decodeServerMessage(encodeRefusal(error, id, undefined))
    expect(answer).toEqual({ verb: 'error', id, code, message, retryable, docs, retryAfterMs })
  }
  expect(encodeRefusal(one, 'f', ({ verb }) => `as ${verb}`)).toBe('as error')
})
