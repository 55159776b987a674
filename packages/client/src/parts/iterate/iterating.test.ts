import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestClient } from '../../dev/testing/index.js'
import type { Message } from '../../index.js'
import { iterate } from './index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Runs everything that needs no time. */
const settle = () => vi.advanceTimersByTimeAsync(0)

describe('iteration', () => {
  it('yields the messages since the call, in order, and unlistens when the loop is left', async () => {
    const { client, server } = createTestClient()
    const iteration = iterate('a', { client })
    await iteration.subscription.ready
    for (let n = 1; n <= 5; n++) server.publish('a', n)
    const payloads: unknown[] = []
    for await (const { payload } of iteration) {
      payloads.push(payload)
      if (payload === 3) break
    }
    expect(payloads).toEqual([1, 2, 3])
    expect(iteration.subscription.state).toBe('closed')
    expect(server.patterns).toEqual([])
  })

  it('ends without an error when the signal is aborted or the client is closed', async () => {
    const { client, server } = createTestClient()
    const controller = new AbortController()
    const read = async (iteration: AsyncIterable<Message<unknown>>) => {
      const payloads: unknown[] = []
      for await (const { payload } of iteration) payloads.push(payload)
      return payloads
    }
    const aborted = read(iterate('a', { client, signal: controller.signal }))
    const closed = read(iterate('a', { client }))
    await settle()
    server.publish('a', 1)
    await settle()
    controller.abort()
    expect(await aborted).toEqual([1])
    server.publish('a', 2)
    await settle()
    await client.close()
    expect(await closed).toEqual([1, 2])
  })

  it('throws when the listen is refused', async () => {
    const { client, server } = createTestClient()
    client.on('error', () => undefined)
    server.refuse('listen', 'E_FORBIDDEN')
    await expect(iterate('a', { client })[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
  })

  it('yields the buffered messages and then throws when the loop is too slow', async () => {
    const { client, server } = createTestClient()
    const errors: unknown[] = []
    client.on('error', ({ error }) => errors.push(error))
    const iteration = iterate('a', { client, bufferMaxMessages: 2 })
    await iteration.subscription.ready
    for (let n = 1; n <= 3; n++) server.publish('a', n)
    await settle()
    const payloads: unknown[] = []
    const read = async () => {
      for await (const { payload } of iteration) payloads.push(payload)
    }
    await expect(read()).rejects.toMatchObject({ code: 'E_BUFFER_OVERFLOW' })
    expect(payloads).toEqual([1, 2])
    expect(errors).toEqual([expect.objectContaining({ code: 'E_BUFFER_OVERFLOW' })])
    expect(server.patterns).toEqual([])
  })

  it.each([
    ['drop-oldest', [3, 4]],
    ['drop-newest', [1, 2]],
  ] as const)('keeps a limited number of messages with %s, and counts the others', async (bufferOverflow, kept) => {
    const { client, server } = createTestClient()
    const iteration = iterate('a', { client, bufferMaxMessages: 2, bufferOverflow })
    await iteration.subscription.ready
    for (let n = 1; n <= 4; n++) server.publish('a', n)
    await settle()
    const iterator = iteration[Symbol.asyncIterator]()
    const payloads = [await iterator.next(), await iterator.next()].map(({ value }) => value?.payload)
    expect(payloads).toEqual(kept)
    expect(iteration.droppedCount).toBe(2)
  })

  it.each([
    [{ bufferMaxMessages: 0 }, 'E_OPTION_INVALID', 'bufferMaxMessages'],
    [{ bufferOverflow: 'drop' as never }, 'E_OPTION_INVALID', 'bufferOverflow'],
    [{ last: -1 }, 'E_OPTION_INVALID', 'last'],
  ])('refuses invalid options: %j', (options, code, name) => {
    const { client, server } = createTestClient()
    expect(() => iterate('a', { client, ...options })).toThrowError(
      expect.objectContaining({ code, message: expect.stringContaining(name) }),
    )
    expect(server.patterns).toEqual([])
  })
})
