import { describe, expect, it, vi } from 'vitest'
import { Interest } from './interest.js'
import { Router } from './router.js'

/** A broker whose binds are settled by the test. */
function brokerWithSlowBind() {
  const binds: { pattern: string; resolve: () => void; reject: (error: Error) => void }[] = []
  return {
    binds,
    bind: vi.fn(
      (pattern: string) =>
        new Promise<void>((resolve, reject) => {
          binds.push({ pattern, resolve, reject })
        }),
    ),
    unbind: vi.fn<(pattern: string) => void | Promise<void>>(),
  }
}

describe('Interest', () => {
  it('binds a pattern once, for the first listener, and unbinds it after the last', () => {
    const broker = { bind: vi.fn<(pattern: string) => void>(), unbind: vi.fn<(pattern: string) => void>() }
    const interest = new Interest(new Router(), broker, vi.fn())
    const group = interest.retain('a.*')
    expect(interest.retain('a.*')).toBe(group)
    expect(broker.bind.mock.calls).toEqual([['a.*']])
    interest.release('a.*')
    expect(broker.unbind).not.toHaveBeenCalled()
    interest.release('a.*')
    expect(broker.unbind.mock.calls).toEqual([['a.*']])
  })

  it('lets a second listener wait for the binding that the first has asked for', async () => {
    const broker = brokerWithSlowBind()
    const interest = new Interest(new Router(), broker, vi.fn())
    const first = interest.retain('a')
    const second = interest.retain('a')
    expect(broker.bind).toHaveBeenCalledOnce()
    broker.binds[0]?.resolve()
    expect(await first).toBe(await second)
    expect(interest.retain('a')).toBe(await first)
  })

  it('counts nobody whose binding has failed', async () => {
    const broker = brokerWithSlowBind()
    const router = new Router()
    const interest = new Interest(router, broker, vi.fn())
    const outcomes = Promise.allSettled([interest.retain('a'), interest.retain('a')])
    broker.binds[0]?.reject(new Error('unreachable'))
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(router.has('a')).toBe(false)
    const again = interest.retain('a')
    expect(broker.bind).toHaveBeenCalledTimes(2)
    broker.binds[1]?.resolve()
    await again
    expect(router.has('a')).toBe(true)
  })

  it('counts nobody when the broker refuses at once', () => {
    const router = new Router()
    const bind = () => {
      throw new Error('no')
    }
    expect(() => new Interest(router, { bind, unbind: vi.fn() }, vi.fn()).retain('a')).toThrow('no')
    expect(router.has('a')).toBe(false)
  })

  it('reports an unbind that fails, now or later', async () => {
    const onError = vi.fn()
    const failsNow = (): void => {
      throw new Error('now')
    }
    for (const unbind of [() => Promise.reject(new Error('later')), failsNow]) {
      const interest = new Interest(new Router(), { bind: () => undefined, unbind }, onError)
      await interest.retain('a')
      interest.release('a')
    }
    await vi.waitFor(() => expect(onError).toHaveBeenCalledTimes(2))
  })
})
