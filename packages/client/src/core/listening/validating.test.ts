import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestClient, createTestServer } from '../../dev/testing/index.js'
import type { ListenOptions } from '../../index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/**
 * A start that the wire cannot say threw while the connection started: the client stayed `connecting` for ever, and
 * nothing else was sent. Options were checked when they were sent, after the subscription had been added.
 */
describe('options of listen', () => {
  it.each<[ListenOptions, string, string]>([
    [{ since: '' }, 'E_POSITION_INVALID', "since ''"],
    [{ since: 'e 1' }, 'E_POSITION_INVALID', "since 'e 1'"],
    [{ since: 7 as never }, 'E_POSITION_INVALID', "since '7'"],
    [{ last: 1.5 }, 'E_OPTION_INVALID', 'last 1.5'],
    [{ last: -1 }, 'E_OPTION_INVALID', 'last -1'],
    [{ last: 1e15 }, 'E_OPTION_INVALID', 'last 1000000000000000'],
    [{ rewind: 'soon' }, 'E_OPTION_INVALID', 'rewind soon'],
    [{ last: 1, rewind: 1 }, 'E_OPTION_INVALID', 'at most one of since, last and rewind'],
    [{ since: 'e:1', last: 1 }, 'E_OPTION_INVALID', 'at most one of since, last and rewind'],
  ])('are refused at once, and nothing is added: %j', async (options, code, detail) => {
    const { client, server } = createTestClient()
    expect(() => client.listen('a', () => undefined, options)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(detail) }),
    )
    const other = client.listen('b', () => undefined)
    await client.publish('c', 1)
    expect([client.state, other.state]).toEqual(['connected', 'active'])
    expect(server.patterns).toEqual(['b'])
  })
})

it('sends the other listens and the publishes when one cannot be sent', async () => {
  const { client, server } = createTestClient()
  const errors: unknown[] = []
  client.on('error', ({ error }) => errors.push(error))
  const { WebSocket } = server
  const send = vi.spyOn(WebSocket.prototype, 'send').mockImplementationOnce(() => {
    throw new Error('this one')
  })
  const [first, second] = ['a', 'b'].map((pattern) => client.listen(pattern, () => undefined))
  await client.publish('c', 1)
  expect(send).toHaveBeenCalledTimes(3)
  expect([first?.state, second?.state, client.state]).toEqual(['closed', 'active', 'connected'])
  expect(errors).toEqual([expect.objectContaining({ code: 'E_MESSAGE_INVALID', cause: new Error('this one') })])
})

it('connects although a part of the client throws', async () => {
  const { client } = createTestClient()
  const errors: unknown[] = []
  client.on('error', ({ error }) => errors.push(error))
  client.add(() => ({
    up: () => {
      throw new Error('part')
    },
  }))
  await client.publish('c', 1)
  expect(errors).toEqual([new Error('part')])
})

/** A listen beyond the server's limit ended for good, although another one was released later. */
describe('a listen for which the server has no room', () => {
  it('is reported once, and becomes live when another one is released', async () => {
    const server = createTestServer({ limits: { maxListensPerConnection: 1 } })
    const { client } = createTestClient({ server, random: () => 0.5 })
    const errors: unknown[] = []
    client.on('error', ({ error, pattern }) => errors.push([(error as { code: string }).code, pattern]))
    const first = client.listen('a', () => undefined)
    await first.ready
    const handled: unknown[] = []
    const second = client.listen('b', (payload) => handled.push(payload))
    await expect(second.ready).rejects.toMatchObject({ code: 'E_LISTEN_LIMIT' })
    expect(second.state).toBe('pending')
    server.drop()
    await vi.advanceTimersByTimeAsync(600)
    expect(errors).toEqual([['E_LISTEN_LIMIT', 'b']])
    await first.close()
    await second.ready
    server.publish('b', 1)
    await vi.advanceTimersByTimeAsync(0)
    expect(handled).toEqual([1])
    await client.close()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('stays ended when the app has ended it before the answer', async () => {
    const server = createTestServer({ limits: { maxListensPerConnection: 1 } })
    const { client } = createTestClient({ server })
    const errors: unknown[] = []
    client.on('error', ({ error }) => errors.push(error))
    const first = client.listen('a', () => undefined)
    await first.ready
    const ended = client.listen('b', () => undefined)
    const waiting = client.listen('c', () => undefined)
    void ended.close()
    await vi.advanceTimersByTimeAsync(0)
    expect(ended.state).toBe('closed')
    expect(errors).toHaveLength(1)
    await first.close()
    await waiting.ready
    expect([ended.state, waiting.state, server.patterns]).toEqual(['closed', 'active', ['c']])
  })

  it('takes turns with others, and is tried again without a release too', async () => {
    const { client, server } = createTestClient({ random: () => 0.5 })
    client.on('error', () => undefined)
    await client.connect()
    for (let count = 0; count < 3; count++) server.refuse('listen', 'E_LISTEN_LIMIT')
    const [first, second] = ['a', 'b'].map((pattern) => client.listen(pattern, () => undefined))
    await vi.advanceTimersByTimeAsync(20_000)
    expect([first?.state, second?.state]).toEqual(['pending', 'pending'])
    await vi.advanceTimersByTimeAsync(20_000)
    expect([first?.state, second?.state]).toEqual(['active', 'active'])
    const asked = server.received.flatMap((message) => (message.verb === 'listen' ? [message.pattern] : []))
    expect(asked).toEqual(['a', 'b', 'a', 'b', 'a'])
  })
})
