import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { watchedClient } from '../../../test/watched-client.js'
import { type ErrorCode, WebMQError } from '../../protocol/errors.js'
import { createPrinter } from './printer.js'

const printed = vi.spyOn(console, 'error')
beforeEach(() => {
  vi.useFakeTimers()
  printed.mockReset().mockReturnValue()
})
afterEach(() => {
  vi.useRealTimers()
})

const errorOf = (code: ErrorCode, detail?: string) => new WebMQError(code, { detail })

it('prints an error that repeats once in 10 s, with the number of the others', () => {
  const print = createPrinter()
  const [limit, other] = [errorOf('E_RATE_LIMIT'), errorOf('E_FORBIDDEN', 'listen a')]
  for (let count = 0; count < 5_000; count++) print(limit)
  expect(printed.mock.calls).toEqual([[limit]])
  vi.advanceTimersByTime(10_000)
  for (let count = 0; count < 5; count++) print(limit)
  print(other)
  print(errorOf('E_FORBIDDEN', 'listen b'))
  expect(printed.mock.calls.slice(1)).toEqual([
    [limit, 'and 4999 more'],
    [other, 'and 4 more'],
    [errorOf('E_FORBIDDEN', 'listen b')],
  ])
})

it('prints whatever an app throws', () => {
  const print = createPrinter()
  for (const error of [undefined, new Error('a'), null, Object.create(null), 'text', Symbol('s')]) print(error)
  expect(printed.mock.calls.slice(0, 3)).toEqual([[undefined], [new Error('a')], [null]])
})

// 500 cursors a second wrote 286,000 lines in two minutes.
it('is what a client prints with that nobody listens to', async () => {
  const { client, server } = watchedClient()
  await client.connect()
  for (let count = 0; count < 100; count++) {
    server.refuse('publish', 'E_RATE_LIMIT')
    await client.publish('cursors.1', count, { ack: 'none' })
  }
  await vi.advanceTimersByTimeAsync(10)
  expect(printed.mock.calls).toEqual([[expect.objectContaining({ code: 'E_RATE_LIMIT' })]])
  await client.close()
})
