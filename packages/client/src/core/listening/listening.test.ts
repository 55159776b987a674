import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestClient, type createTestServer } from '../../dev/testing/index.js'
import { iterate } from '../../parts/iterate/index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Runs everything that needs no time. */
const settle = () => vi.advanceTimersByTimeAsync(0)
function listensSent(server: ReturnType<typeof createTestServer>): unknown[] {
  return server.received.filter(({ verb }) => verb === 'listen' || verb === 'unlisten')
}

describe('listen', () => {
  it('returns a pending subscription at once and resolves ready when the server has accepted it', async () => {
    const { client, server } = createTestClient()
    const subscription = client.listen('chat.*', () => undefined)
    expect(subscription.state).toBe('pending')
    expect(subscription.pattern).toBe('chat.*')
    expect(await subscription.ready).toEqual({ recovered: false, replayed: 0, position: 'epoch1:0.AAAAA' })
    expect(subscription.state).toBe('active')
    expect(server.patterns).toEqual(['chat.*'])
  })

  it('passes payload and message to the handler, for matching keys only', async () => {
    const { client, server } = createTestClient()
    const handler = vi.fn()
    await client.listen('chat.*.message', handler).ready
    server.publish('chat.42.message', { text: 'hi' })
    server.publish('chat.42.typing', {})
    await settle()
    const message = { key: 'chat.42.message', payload: { text: 'hi' }, position: 'epoch1:1.AAAAA', replayed: false }
    expect(handler.mock.calls).toEqual([[{ text: 'hi' }, message]])
  })

  it('reaches each handler of each matching pattern once, though the server sends the message once', async () => {
    const { client, server } = createTestClient()
    const calls: string[] = []
    await client.listen('#', () => calls.push('hash')).ready
    await client.listen('a.*', () => calls.push('star 1')).ready
    await client.listen('a.*', () => calls.push('star 2')).ready
    server.publish('a.b', 1)
    await settle()
    expect(calls).toEqual(['hash', 'star 1', 'star 2'])
  })

  it('sends one listen per pattern and one unlisten when its last subscription ends', async () => {
    const { client, server } = createTestClient()
    const first = client.listen('a', () => 1)
    const second = client.listen('a', () => 2)
    await second.ready
    const third = client.listen('a', () => 3)
    expect(await third.ready).toEqual({ recovered: false, replayed: 0, position: 'epoch1:0.AAAAA' })
    await first.close()
    third[Symbol.dispose]()
    await settle()
    expect(listensSent(server)).toEqual([{ verb: 'listen', id: 'l1', pattern: 'a' }])
    await second.close()
    expect(listensSent(server)).toHaveLength(2)
    expect(server.patterns).toEqual([])
  })

  it('lets a listen join one that still waits for its answer', async () => {
    const { client, server } = createTestClient()
    await client.connect()
    const first = client.listen('a', () => 1)
    const second = client.listen('a', () => 2)
    await Promise.all([first.ready, second.ready])
    expect(listensSent(server)).toHaveLength(1)
  })

  // One component that unmounted ended the subscription of another one: both shared it, as they shared the handler.
  it('makes a subscription of its own for each call, also with the same pattern and handler', async () => {
    const { client, server } = createTestClient()
    const handler = vi.fn()
    const first = client.listen('a', handler)
    const second = client.listen('a', handler)
    expect(second).not.toBe(first)
    await second.ready
    await first.close()
    expect([first.state, second.state]).toEqual(['closed', 'active'])
    server.publish('a', 1)
    await settle()
    expect(handler).toHaveBeenCalledTimes(1)
    const third = client.listen('a', handler)
    await client.unlisten('a', handler)
    expect([second.state, third.state]).toEqual(['active', 'closed'])
    expect(server.patterns).toEqual(['a'])
    await client.unlisten('a', handler)
    expect(server.patterns).toEqual([])
  })

  it('handles no message after unlisten was called', async () => {
    const { client, server } = createTestClient()
    const handler = vi.fn()
    const subscription = client.listen('a', handler)
    await subscription.ready
    server.publish('a', 1)
    const gone = subscription.close()
    await gone
    await settle()
    expect(handler).not.toHaveBeenCalled()
  })

  it('unlistens all handlers of a pattern when no handler is named', async () => {
    const { client } = createTestClient()
    const subscriptions = [client.listen('a', () => 1), client.listen('a', () => 2), client.listen('b', () => 3)]
    await Promise.all(subscriptions.map(({ ready }) => ready))
    await client.unlisten('a')
    expect(subscriptions.map(({ state }) => state)).toEqual(['closed', 'closed', 'active'])
  })

  it('throws at once for an invalid pattern', () => {
    const { client } = createTestClient()
    expect(() => client.listen('a.b*', () => 1)).toThrow(expect.objectContaining({ code: 'E_PATTERN_INVALID' }))
  })

  it('reports errors and rejections of handlers, and calls the others', async () => {
    const { client, server } = createTestClient()
    const errors: unknown[] = []
    const last = vi.fn()
    client.on('error', (event) => errors.push(event))
    client.listen('a', () => {
      throw new Error('sync')
    })
    client.listen('a', () => Promise.reject(new Error('async')))
    await client.listen('a', last).ready
    server.publish('a', 1)
    await settle()
    expect(last).toHaveBeenCalledTimes(1)
    expect(errors).toEqual([
      { error: new Error('sync'), pattern: 'a', key: 'a' },
      { error: new Error('async'), pattern: 'a', key: 'a' },
    ])
  })

  it('writes unhandled errors to the console, also those of the error handler', async () => {
    const { client, server } = createTestClient()
    const written = vi.spyOn(console, 'error').mockImplementation(() => undefined)
    await client.listen('a', () => {
      throw new Error('handler')
    }).ready
    server.publish('a', 1)
    await settle()
    client.on('error', () => {
      throw new Error('error handler')
    })
    server.publish('a', 2)
    await settle()
    expect(written.mock.calls).toEqual([[new Error('handler')], [new Error('error handler')]])
    written.mockRestore()
  })

  it('allows a handler to listen and unlisten while a message is being handled', async () => {
    const { client, server } = createTestClient()
    const calls: string[] = []
    const inner = () => calls.push('inner')
    const outer = client.listen('a', () => {
      calls.push('outer')
      client.listen('a', inner)
      void outer.close()
    })
    await outer.ready
    server.publish('a', 1)
    await settle()
    server.publish('a', 2)
    await settle()
    expect(calls).toEqual(['outer', 'inner'])
  })

  it('rejects ready, closes and reports when the server refuses, without an unhandled rejection', async () => {
    const { client, server } = createTestClient()
    const errors: unknown[] = []
    client.on('error', ({ error, pattern }) => errors.push([error, pattern]))
    server.refuse('listen', 'E_FORBIDDEN')
    const subscription = client.listen('secret.#', () => undefined)
    const onError = vi.fn()
    const onClosed = vi.fn()
    subscription.on('error', onError)
    subscription.on('closed', onClosed)
    await expect(subscription.ready).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
    expect(subscription.state).toBe('closed')
    expect(onError).toHaveBeenCalledTimes(1)
    expect(onClosed).toHaveBeenCalledTimes(1)
    expect(errors).toEqual([[expect.objectContaining({ code: 'E_FORBIDDEN' }), 'secret.#']])
    await client.listen('secret.#', () => undefined).ready
  })

  it('retries when the broker is away or the answer does not come', async () => {
    const { client, server } = createTestClient({ random: () => 0.5, ackTimeoutMs: 3_000 })
    server.refuse('listen', 'E_BROKER_UNAVAILABLE')
    server.ignore('listen')
    const subscription = client.listen('a', () => undefined)
    await settle()
    expect(listensSent(server)).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(250)
    expect(listensSent(server)).toHaveLength(2)
    await vi.advanceTimersByTimeAsync(3_000 + 500)
    expect(listensSent(server)).toHaveLength(3)
    expect(subscription.state).toBe('active')
  })

  it('reports a payload that cannot be decoded, and handles the next message', async () => {
    const decode = vi.fn(([first]: Uint8Array) => {
      if (first === 1) throw new Error('unreadable')
      return first
    })
    const { client, server } = createTestClient({ codec: { encode: () => new Uint8Array(), decode } })
    const errors: unknown[] = []
    const handled: unknown[] = []
    client.on('error', (event) => errors.push(event))
    await client.listen('a', (payload) => handled.push(payload)).ready
    for (const byte of [1, 2]) server.publish('a', new Uint8Array([byte]))
    await settle()
    expect(errors).toEqual([{ error: expect.objectContaining({ code: 'E_PAYLOAD_INVALID' }), key: 'a' }])
    expect(handled).toEqual([2])
  })

  it('starts where the app asks: after a position, or with the last messages', async () => {
    const { client, server } = createTestClient()
    for (let n = 1; n <= 5; n++) server.publish('a', n)
    const since: [unknown, boolean][] = []
    const last: [unknown, boolean][] = []
    const live: unknown[] = []
    const subscription = client.listen('a', (payload, { replayed }) => since.push([payload, replayed]), {
      since: 'epoch1:3.AAAAA',
    })
    expect(await subscription.ready).toEqual({ recovered: true, replayed: 2, position: 'epoch1:5.AAAAA' })
    await client.listen('a', (payload, { replayed }) => last.push([payload, replayed]), { last: 1 }).ready
    await client.listen('a', (payload) => live.push(payload)).ready
    server.publish('a', 6)
    await settle()
    expect(since).toEqual([
      [4, true],
      [5, true],
      [6, false],
    ])
    expect(last).toEqual([
      [5, true],
      [6, false],
    ])
    expect(live).toEqual([6])
  })

  it('delivers bytes as bytes', async () => {
    const { client, server } = createTestClient()
    const payloads: unknown[] = []
    await client.listen('a', (payload) => payloads.push(payload)).ready
    server.publish('a', new Uint8Array([1, 2, 0, 255]))
    await settle()
    expect(payloads).toEqual([new Uint8Array([1, 2, 0, 255])])
  })

  it('decodes the payloads of binary frames with the codec, and encodes with it', async () => {
    const codec = {
      encode: (payload: unknown) => new TextEncoder().encode(`<${JSON.stringify(payload)}>`),
      decode: (bytes: Uint8Array): unknown => JSON.parse(new TextDecoder().decode(bytes).slice(1, -1)),
    }
    const { client, server } = createTestClient({ codec })
    const payloads: unknown[] = []
    await client.listen('#', (payload) => payloads.push(payload)).ready
    await client.publish('a', { n: 1 })
    server.publish('a', { n: 2 })
    await settle()
    expect(payloads).toEqual([{ n: 1 }, { n: 2 }])
    expect(server.received.at(-1)).toMatchObject({ verb: 'publish', payload: new TextEncoder().encode('<{"n":1}>') })
  })
})

describe('a signal', () => {
  it('ends the subscription when it is aborted', async () => {
    const { client, server } = createTestClient()
    const controller = new AbortController()
    const handler = vi.fn()
    const subscription = client.listen('a', handler, { signal: controller.signal })
    await subscription.ready
    controller.abort()
    expect(subscription.state).toBe('closed')
    await settle()
    expect(server.patterns).toEqual([])
  })

  it('that is already aborted makes a closed subscription with a rejected ready', async () => {
    const { client, server } = createTestClient()
    const subscription = client.listen('a', () => undefined, { signal: AbortSignal.abort() })
    expect(subscription.state).toBe('closed')
    await expect(subscription.ready).rejects.toMatchObject({ code: 'E_ABORTED' })
    await settle()
    expect(listensSent(server)).toEqual([])
    expect(await iterate('a', { client, signal: AbortSignal.abort() })[Symbol.asyncIterator]().next()).toEqual({
      done: true,
      value: undefined,
    })
  })
})

it('closes the subscriptions of a pattern that the server has revoked, and no others', async () => {
  const { client, server } = createTestClient()
  const errors: unknown[] = []
  client.on('error', ({ error, pattern }) => errors.push([error, pattern]))
  const handled: unknown[] = []
  const revoked = client.listen('admin.#', () => undefined)
  const kept = client.listen('a', (payload) => handled.push(payload))
  await Promise.all([revoked.ready, kept.ready])
  server.publish('a', 1)
  server.revoke('admin.#')
  server.publish('a', 2)
  await settle()
  server.publish('a', 3)
  await settle()
  expect([revoked.state, kept.state]).toEqual(['closed', 'active'])
  expect(handled).toEqual([1, 2, 3])
  expect(errors).toEqual([[expect.objectContaining({ code: 'E_FORBIDDEN' }), 'admin.#']])
  expect(listensSent(server)).toHaveLength(2)
})

it('keeps pending subscriptions when the listen of the active ones is revoked', async () => {
  const { client, server } = createTestClient()
  client.on('error', () => undefined)
  const active = client.listen('a', () => 1)
  await active.ready
  const waiting = client.listen('a', () => 2, { last: 1 })
  server.ignore('listen')
  server.revoke('a')
  await settle()
  expect([active.state, waiting.state]).toEqual(['closed', 'pending'])
})

it('lets no subscription miss what only another one of its pattern may miss', async () => {
  // Symptom: a plain handler lost messages on a slow connection. Cause: the first subscription of a pattern chose `slow`
  // for all.
  const { client, server } = createTestClient()
  await client.listen('a', () => 1, { overflow: 'latest' }).ready
  await client.listen('a', () => 2).ready
  await client.listen('a', () => 3, { overflow: 'latest' }).ready
  expect(listensSent(server)).toMatchObject([{ overflow: 'latest' }, { overflow: 'disconnect' }, {}])
  server.drop()
  await vi.advanceTimersByTimeAsync(1_000)
  expect(listensSent(server).slice(3)).toMatchObject([{ overflow: 'disconnect' }])
})
