import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestClient } from '../../dev/testing/index.js'
import type { ClientError, Gap, Receiver } from '../../index.js'
import { type LoadRequest, loaded } from './index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Runs everything that needs no time. */
const settle = () => vi.advanceTimersByTimeAsync(0)
/** Longer than any of the first retries. */
const retry = () => vi.advanceTimersByTimeAsync(2_000)

/** A `load` whose promises the test settles. */
function manualLoad() {
  const requests: LoadRequest[] = []
  const answers: { resolve(position?: string): void; reject(error: unknown): void }[] = []
  const load = (request: LoadRequest) => {
    requests.push(request)
    return new Promise<string | undefined>((resolve, reject) => {
      answers.push({ resolve, reject })
    })
  }
  return { load, requests, answers }
}

describe('load', () => {
  it('runs when the listen is live; messages that arrive meanwhile are handled afterwards, in order', async () => {
    const { client, server } = createTestClient()
    const { load, requests, answers } = manualLoad()
    const handled: unknown[] = []
    const receiver = loaded((payload) => handled.push(payload), load)
    const subscription = client.listen('a', receiver)
    await subscription.ready
    await settle()
    expect(requests).toEqual([{ cause: 'initial', signal: expect.any(AbortSignal) }])
    server.publish('a', 1)
    server.publish('a', 2)
    await settle()
    expect([handled, receiver.isLoading]).toEqual([[], true])
    answers[0]?.resolve()
    await settle()
    server.publish('a', 3)
    await settle()
    expect([handled, receiver.isLoading]).toEqual([[1, 2, 3], false])
  })

  it('runs for a handler that joins others, after listen has returned', async () => {
    const { client } = createTestClient()
    await client.listen('a', () => 1).ready
    const load = vi.fn()
    const receiver = loaded(() => 2, load)
    client.listen('a', receiver)
    expect(receiver.isLoading).toBe(true)
    expect(load).not.toHaveBeenCalled()
    await settle()
    expect(load).toHaveBeenCalledTimes(1)
  })

  it('skips messages up to the position that it returns', async () => {
    const { client, server } = createTestClient()
    const { load, answers } = manualLoad()
    const handled: unknown[] = []
    await client.listen(
      'a',
      loaded((payload) => handled.push(payload), load),
    ).ready
    for (const n of [1, 2, 3]) server.publish('a', n)
    await settle()
    answers[0]?.resolve('epoch1:4.AAAAA')
    await settle()
    // 4 was on its way when the app had loaded it.
    for (const n of [4, 5]) server.publish('a', n)
    await settle()
    expect(handled).toEqual([5])
  })

  it('runs again on every gap, after a reconnect and live, but not after a recovery', async () => {
    const { client, server } = createTestClient()
    const causes: unknown[] = []
    const load = ({ cause, gap }: LoadRequest) => void causes.push([cause, gap?.reason])
    await client.listen(
      'a',
      loaded(() => undefined, load),
    ).ready
    server.drop()
    await retry()
    expect(causes).toEqual([['initial', undefined]])
    server.gap('a')
    await settle()
    server.drop()
    await settle()
    server.publish('a', 1)
    server.expireHistory()
    await retry()
    expect(causes.slice(1)).toEqual([
      ['gap', 'slow-consumer'],
      ['gap', 'history-expired'],
    ])
  })

  it('starts again on a gap during a run, and ignores the first answer', async () => {
    const { client, server } = createTestClient()
    const { load, requests, answers } = manualLoad()
    const handled: unknown[] = []
    const receiver = loaded((payload) => handled.push(payload), load)
    const subscription = client.listen('a', receiver)
    await subscription.ready
    await settle()
    server.publish('a', 1)
    server.gap('a')
    server.publish('a', 2)
    await settle()
    expect(requests.map(({ signal }) => signal.aborted)).toEqual([true, false])
    answers[0]?.resolve()
    await settle()
    expect([handled, receiver.isLoading]).toEqual([[], true])
    answers[1]?.resolve()
    await settle()
    expect(handled).toEqual([1, 2])
  })

  it('is retried when it throws, with an error event', async () => {
    const { client, server } = createTestClient()
    const errors: ClientError[] = []
    client.on('error', (error) => errors.push(error))
    const handled: unknown[] = []
    let failures = 2
    const load = vi.fn(() => {
      if (failures-- > 0) throw new Error('503')
    })
    const receiver = loaded((payload) => handled.push(payload), load)
    const subscription = client.listen('a', receiver)
    await subscription.ready
    await settle()
    server.publish('a', 1)
    await settle()
    expect([load.mock.calls.length, receiver.isLoading, handled]).toEqual([1, true, []])
    await vi.advanceTimersByTimeAsync(1_500)
    expect([load.mock.calls.length, receiver.isLoading, handled]).toEqual([3, false, [1]])
    expect(errors).toMatchObject([
      { error: { message: '503' }, pattern: 'a' },
      { error: { message: '503' }, pattern: 'a' },
    ])
  })

  it('reports a gap and runs again when too many messages wait', async () => {
    // A pause of no length would begin the second attempt at once.
    const { client, server } = createTestClient({ random: () => 0.5 })
    const gaps: Gap[] = []
    client.on('gap', (gap) => gaps.push(gap))
    const { load, requests, answers } = manualLoad()
    const handled: unknown[] = []
    const receiver = loaded((payload) => handled.push(payload), load, { bufferMaxMessages: 3 })
    const subscription = client.listen('a', receiver)
    await subscription.ready
    await settle()
    for (const n of [1, 2, 3, 4]) server.publish('a', n)
    await settle()
    expect(requests[0]?.signal.aborted).toBe(true)
    expect(gaps).toEqual([{ pattern: 'a', reason: 'limit' }])
    // Between two attempts no message is lost: the next attempt loads the state with all of them.
    for (const n of [5, 6, 7, 8]) server.publish('a', n)
    await retry()
    expect(requests[1]).toMatchObject({ cause: 'gap', gap: { reason: 'limit' } })
    server.publish('a', 9)
    await settle()
    answers[1]?.resolve()
    await settle()
    expect(gaps).toHaveLength(1)
    expect(handled).toEqual([9])
    expect(receiver.isLoading).toBe(false)
  })

  it('continues across a reconnect, and ends with its subscription', async () => {
    const { client, server } = createTestClient()
    const { load, requests, answers } = manualLoad()
    const handled: unknown[] = []
    const receiver = loaded((payload) => handled.push(payload), load)
    const subscription = client.listen('a', receiver)
    await subscription.ready
    await settle()
    server.publish('a', 1)
    await settle()
    server.drop()
    await settle()
    server.publish('a', 2)
    await retry()
    expect(requests).toHaveLength(1)
    answers[0]?.resolve()
    await settle()
    expect(handled).toEqual([1, 2])
    server.gap('a')
    await settle()
    await subscription.close()
    expect(requests[1]?.signal.aborted).toBe(true)
    answers[1]?.resolve()
    await retry()
    expect([requests.length, receiver.isLoading]).toEqual([2, false])
  })

  it('passes everything to a receiver inside, which has messages of its own to wait for', async () => {
    const { client, server } = createTestClient()
    const { load, answers } = manualLoad()
    const told: unknown[] = []
    const inner: Receiver = {
      options: { last: 1 },
      deliver: ({ payload }) => told.push(payload),
      accepted: () => told.push('accepted'),
      gap: ({ reason }) => told.push(reason),
      down: () => told.push('down'),
      close: (error) => told.push(error),
    }
    server.publish('a', 1)
    const subscription = client.listen('a', loaded(inner, load))
    await subscription.ready
    server.publish('a', 2)
    await settle()
    expect(told).toEqual(['accepted'])
    answers[0]?.resolve()
    await settle()
    server.gap('a')
    await settle()
    answers[1]?.resolve()
    server.drop()
    await retry()
    await client.unlisten('a', inner)
    expect(told).toEqual(['accepted', 1, 2, 'slow-consumer', 'down', 'accepted', undefined])
    expect(subscription.state).toBe('closed')
  })

  it('loads again after open when the client was closed meanwhile', async () => {
    const { client } = createTestClient()
    const { load, requests, answers } = manualLoad()
    await client.listen(
      'a',
      loaded(() => undefined, load),
    ).ready
    await settle()
    await client.close()
    expect(requests[0]?.signal.aborted).toBe(true)
    await client.open()
    await settle()
    answers[1]?.resolve()
    await settle()
    await client.close()
    await client.open()
    await settle()
    expect(requests.map(({ cause }) => cause)).toEqual(['initial', 'initial'])
  })

  it.each([0, Number.NaN])('refuses a buffer of %d messages', (bufferMaxMessages) => {
    expect(() =>
      loaded(
        () => undefined,
        () => undefined,
        { bufferMaxMessages },
      ),
    ).toThrowError(
      expect.objectContaining({ code: 'E_OPTION_INVALID', message: expect.stringMatching(/bufferMaxMessages/) }),
    )
  })
})
