import { expect, it, vi } from 'vitest'
import { WebMQError } from 'webmq-client/protocol'
import { shownError } from './shown-error.js'

// Symptom: while the keys that verify tokens could not be fetched, each token of a stranger wrote an error with a stack. Cause:
// a failure of the server was logged each time, whoever caused it.
it('logs what a client causes again and again once per second', () => {
  const logger = { error: vi.fn() }
  const session = { id: 's', services: { logger } } as unknown as Parameters<typeof shownError>[1]
  for (const error of [new WebMQError('E_INTERNAL'), new TypeError('a bug'), new WebMQError('E_BROKER_REFUSED')])
    for (let count = 0; count < 100; count++)
      expect(shownError(error, session).code).toMatch(/^E_(INTERNAL|UNSUPPORTED)$/)
  expect(logger.error.mock.calls.map(([, message]) => message)).toEqual([
    'a message could not be handled',
    'the broker refused a request of a client',
  ])
})
