import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Receiver } from '../../core/listening/receiver.js'
import { createTestClient, createTestServer, type TestServerOptions } from '../../dev/testing/index.js'
import { concurrently } from './index.js'

/** A handler whose calls end when the test says so. */
function slowHandler() {
  const begun: unknown[] = []
  const waiting: (() => void)[] = []
  return {
    begun,
    handler: (payload: unknown) => {
      begun.push(payload)
      return new Promise<void>((resolve) => waiting.push(resolve))
    },
    /** Ends the oldest call. */
    finish: async () => {
      await vi.waitFor(() => expect(waiting.length).toBeGreaterThan(0))
      waiting.shift()?.()
    },
    waiting,
  }
}

async function setUp(receiver: Receiver<unknown>, options: TestServerOptions = {}, listenOptions = {}) {
  const server = createTestServer(options)
  const { client } = createTestClient({ server, random: () => 0 })
  onTestFinished(() => client.close({ flushMs: 0 }))
  const gaps: string[] = []
  client.on('gap', ({ reason }) => gaps.push(reason))
  const subscription = client.listen('a', receiver, listenOptions)
  await subscription.ready
  return { client, server, gaps, subscription }
}

const settle = async () => {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve()
}

describe('one at a time', () => {
  it('awaits the handler before the next message', async () => {
    const { begun, handler, finish } = slowHandler()
    const { server } = await setUp(concurrently(handler, { concurrency: 1 }))
    for (let n = 0; n < 3; n++) server.publish('a', n)
    await settle()
    expect(begun).toEqual([0])
    await finish()
    await settle()
    expect(begun).toEqual([0, 1])
    await finish()
    await finish()
    expect(begun).toEqual([0, 1, 2])
  })

  it('runs as many as allowed, and its position waits for the oldest', async () => {
    const { begun, handler, waiting } = slowHandler()
    const receiver = concurrently(handler, { concurrency: 2 })
    const { server } = await setUp(receiver)
    for (let n = 0; n < 4; n++) server.publish('a', n)
    await settle()
    expect(begun).toEqual([0, 1])
    waiting[1]?.()
    await settle()
    expect(begun).toEqual([0, 1, 2])
    expect(receiver.backlog?.()?.position).toBeUndefined()
    waiting[0]?.()
    await settle()
    expect(receiver.backlog?.()?.position).toBe('epoch1:2.AAAAA')
  })

  it('asks again for what it could not keep, and handles each message once', async () => {
    const { begun, handler, finish } = slowHandler()
    const { server, gaps } = await setUp(concurrently(handler, { concurrency: 1, maxMessages: 3 }), {
      replayPageMessages: 4,
    })
    const all = Array.from({ length: 20 }, (_, n) => n)
    for (const n of all) server.publish('a', n)
    await settle()
    for (const _ of all) await finish()
    await vi.waitFor(() => expect(begun).toEqual(all))
    server.publish('a', 20)
    await vi.waitFor(() => expect(begun).toEqual([...all, 20]))
    expect(gaps).toEqual([])
  })

  it('asks again with the next connection when the present one is lost', async () => {
    const { begun, handler, finish } = slowHandler()
    const { server, gaps } = await setUp(concurrently(handler, { concurrency: 1, maxMessages: 2 }))
    const all = Array.from({ length: 8 }, (_, n) => n)
    for (const n of all.slice(0, 6)) server.publish('a', n)
    await settle()
    server.drop()
    for (const n of all.slice(6)) server.publish('a', n)
    for (const _ of all) await finish()
    await vi.waitFor(() => expect(begun).toEqual(all))
    expect(gaps).toEqual([])
  })

  it('goes on after the client was closed and opened', async () => {
    const { begun, handler, finish } = slowHandler()
    const { client, server } = await setUp(concurrently(handler, { concurrency: 1, maxMessages: 2 }))
    const all = Array.from({ length: 6 }, (_, n) => n)
    for (const n of all) server.publish('a', n)
    await settle()
    await client.close({ flushMs: 0 })
    await finish()
    await settle()
    expect(begun).toEqual([0])
    void client.open()
    for (const _ of all.slice(1)) await finish()
    await vi.waitFor(() => expect(begun).toEqual(all))
  })

  it('tells a gap when it loses messages that no log has', async () => {
    const { begun, handler, finish } = slowHandler()
    const { server, gaps } = await setUp(concurrently(handler, { concurrency: 1, maxMessages: 1 }))
    for (let n = 0; n < 4; n++) server.publishUnlogged('a', n)
    await settle()
    await finish()
    await finish()
    await vi.waitFor(() => expect(gaps).toEqual(['limit']))
    server.publishUnlogged('a', 9)
    await vi.waitFor(() => expect(begun).toEqual([0, 1, 9]))
  })

  it('reports a rejection, and goes on', async () => {
    const seen: unknown[] = []
    const { client, server } = await setUp(
      concurrently(
        async (payload: unknown) => {
          seen.push(payload)
          throw new Error('no')
        },
        { concurrency: 1 },
      ),
    )
    const errors: unknown[] = []
    client.on('error', ({ error, key }) => errors.push([key, `${error}`]))
    for (const n of [1, 2]) server.publish('a', n)
    await vi.waitFor(() => expect(seen).toEqual([1, 2]))
    expect(errors).toEqual([
      ['a', 'Error: no'],
      ['a', 'Error: no'],
    ])
  })

  it('handles nothing after `close`', async () => {
    const { begun, handler, finish } = slowHandler()
    const { server, subscription } = await setUp(concurrently(handler, { concurrency: 1 }))
    for (const n of [1, 2]) server.publish('a', n)
    await settle()
    await subscription.close()
    await finish()
    await settle()
    expect(begun).toEqual([1])
  })

  it.each([
    [{ concurrency: 0 }, 'concurrency'],
    [{ concurrency: 1, maxMessages: 0 }, 'maxMessages'],
  ])('refuses %j', (options, name) => {
    expect(() => concurrently(() => undefined, options)).toThrow(name)
  })
})
