import { expect, it } from 'vitest'
import { WebMQError } from './errors.js'
import { refusalOf } from './refusal.js'

it('creates a refusal like any other error, but records no stack', () => {
  const refusal = refusalOf('E_KEY_INVALID', { detail: 'empty word', requestId: 'r1' })
  const error = new WebMQError('E_KEY_INVALID', { detail: 'empty word', requestId: 'r1' })
  expect(refusal).toEqual(error)
  expect(refusal.requestId).toBe('r1')
  expect(refusal.stack).not.toContain('\n    at ')
  expect(error.stack).toContain('\n    at ')
})
