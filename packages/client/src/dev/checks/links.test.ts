import { afterAll, expect, it } from 'vitest'
import { WebMQError } from '../../index.js'
import { endMessages } from '../../protocol/errors.js'
import { createTestClient } from '../testing/index.js'
import { linkOf } from './link.js'

afterAll(() => endMessages(linkOf))

/** A console shows the message alone: the link was a property. */
it('an error of a client ends with its link, once', async () => {
  const { client, server } = createTestClient()
  server.refuse('publish', 'E_FORBIDDEN')
  const error = (await client.publish('a', 1).catch((error: unknown) => error)) as WebMQError
  expect(error.message).toMatch(/^not granted to this identity \(https:\S+errors\.md#e_forbidden\)$/)
  expect(error.message.endsWith(`(${error.docs})`)).toBe(true)
  const again = new WebMQError(error.code, { message: error.message })
  expect(again.message).toBe(error.message)
  await client.close()
})

it('what a responder says has none', () => {
  expect(new WebMQError('E_RESPONSE', { message: 'sold out' }).message).toBe('sold out')
})

it('one of a server has none: it goes to other programs', () => {
  endMessages(() => '')
  expect(new WebMQError('E_FORBIDDEN', { detail: 'a' }).message).toBe('not granted to this identity: a')
})
