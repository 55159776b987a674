import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { Router } from '../patterns/router.js'
import { DEFAULT_VARIANT, variantOf } from '../patterns/variant.js'
import { Interest } from './interest.js'

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
    const interest = new Interest({ router: new Router(), broker, onError: vi.fn() })
    const group = interest.retain('a.*')
    expect(interest.retain('a.*')).toBe(group)
    expect(broker.bind.mock.calls).toEqual([['a.*']])
    interest.release('a.*')
    expect(broker.unbind).not.toHaveBeenCalled()
    interest.release('a.*')
    expect(broker.unbind.mock.calls).toEqual([['a.*']])
  })

  it('binds a pattern once for listeners of several variants, and gives each variant a group', () => {
    const broker = { bind: vi.fn<(pattern: string) => void>(), unbind: vi.fn<(pattern: string) => void>() }
    const interest = new Interest({ router: new Router(), broker, onError: vi.fn() })
    const latest = variantOf('websocket', 'latest')
    const group = interest.retain('a.*')
    expect(interest.retain('a.*', latest)).not.toBe(group)
    interest.release('a.*')
    expect(broker.bind.mock.calls).toEqual([['a.*']])
    expect(broker.unbind).not.toHaveBeenCalled()
    interest.release('a.*', latest)
    expect(broker.unbind.mock.calls).toEqual([['a.*']])
  })

  it('counts no variant whose binding has failed', async () => {
    const broker = brokerWithSlowBind()
    const router = new Router()
    const interest = new Interest({ router, broker, onError: vi.fn() })
    const variants = [DEFAULT_VARIANT, variantOf('sse', 'disconnect'), DEFAULT_VARIANT]
    const outcomes = Promise.allSettled(variants.map((variant) => interest.retain('a', variant)))
    expect(broker.bind).toHaveBeenCalledOnce()
    broker.binds[0]?.reject(new Error('unreachable'))
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    expect(router.byteCount).toBe(0)
  })

  // Symptom: 34 KiB of listens held 2.8 MiB, on as many connections as there were. Cause: no bound over all connections.
  it('refuses a new pattern when those of the node take too much memory, until some have ended', () => {
    const router = new Router()
    const broker = { bind: () => undefined, unbind: () => undefined }
    const interest = new Interest({ router, broker, maxPatternBytes: 20_000, onError: vi.fn() })
    const patterns = Array.from({ length: 100 }, (_, index) => `n${index}.a.b.c`)
    const retainAll = () => {
      for (const pattern of patterns) void interest.retain(pattern)
    }
    expect(retainAll).toThrow('as much memory as they may')
    expect(router.byteCount).toBeLessThan(22_000)
    void interest.retain('n0.a.b.c')
    for (const pattern of patterns.slice(0, router.patternCount)) interest.release(pattern)
    interest.release('n0.a.b.c')
    expect(router.byteCount).toBe(0)
    void interest.retain('later')
  })

  it('lets a second listener wait for the binding that the first has asked for', async () => {
    const broker = brokerWithSlowBind()
    const interest = new Interest({ router: new Router(), broker, onError: vi.fn() })
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
    const interest = new Interest({ router, broker, onError: vi.fn() })
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
    expect(() => new Interest({ router, broker: { bind, unbind: vi.fn() }, onError: vi.fn() }).retain('a')).toThrow(
      'no',
    )
    expect(router.has('a')).toBe(false)
  })

  it('reports an unbind that fails, now or later', async () => {
    const onError = vi.fn()
    const failsNow = (): void => {
      throw new Error('now')
    }
    for (const unbind of [() => Promise.reject(new Error('later')), failsNow]) {
      const interest = new Interest({ router: new Router(), broker: { bind: () => undefined, unbind }, onError })
      await interest.retain('a')
      interest.release('a')
    }
    await vi.waitFor(() => expect(onError).toHaveBeenCalledTimes(2))
  })

  it('takes nobody for live who comes between two of those whose binding has failed', async () => {
    const broker = brokerWithSlowBind()
    const interest = new Interest({ router: new Router(), broker, onError: vi.fn() })
    const late = vi.fn()
    const first = Promise.resolve(interest.retain('a')).catch(() => {
      void Promise.resolve(interest.retain('a')).then(late)
    })
    const second = Promise.allSettled([interest.retain('a')])
    broker.binds[0]?.reject(new Error('unreachable'))
    await first
    await second
    expect(broker.bind).toHaveBeenCalledTimes(2)
    expect(late).not.toHaveBeenCalled()
    broker.binds[1]?.resolve()
    await vi.waitFor(() => expect(late).toHaveBeenCalled())
  })

  it('binds again only after the broker has answered the unbind', async () => {
    const broker = brokerWithSlowBind()
    let unbound: () => void = () => undefined
    broker.unbind.mockReturnValueOnce(
      new Promise<void>((resolve) => {
        unbound = resolve
      }),
    )
    const interest = new Interest({ router: new Router(), broker, onError: vi.fn() })
    const first = interest.retain('a')
    broker.binds[0]?.resolve()
    await first
    interest.release('a')
    const again = interest.retain('a')
    await new Promise(setImmediate)
    expect(broker.bind).toHaveBeenCalledTimes(1)
    unbound()
    await vi.waitFor(() => expect(broker.bind).toHaveBeenCalledTimes(2))
    broker.binds[1]?.resolve()
    await again
  })

  it('whatever the order of calls and answers: tells one thing at a time, is bound while someone listens, leaks nothing', async () => {
    const step = fc.record({ kind: fc.constantFrom('retain', 'release', 'answer', 'refuse', 'turn'), index: fc.nat(7) })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const broker = new UnhurriedBroker()
        const router = new Router()
        const interest = new Interest({ router, broker, onError: () => undefined })
        let listening = 0
        const waiting = new Set<unknown>()
        const retain = () => {
          const retained = interest.retain('a')
          waiting.add(retained)
          const live = () => {
            waiting.delete(retained)
            listening++
            expect(broker.isBound).toBe(true)
          }
          if (retained instanceof Promise) return retained.then(live, () => void waiting.delete(retained))
          live()
        }
        const done: unknown[] = []
        for (const { kind, index } of steps) {
          if (kind === 'retain') done.push(retain())
          else if (kind === 'release' && listening > 0) {
            listening--
            interest.release('a')
          } else if (kind === 'answer' || kind === 'refuse') broker.answer(index, kind === 'answer')
          else if (kind === 'turn') await new Promise(setImmediate)
          if (listening > 0) expect(broker.isBound).toBe(true)
          expect(broker.mostAtOnce).toBeLessThanOrEqual(1)
        }
        for (let turn = 0; turn < 200 && (waiting.size > 0 || broker.isBusy); turn++) {
          broker.answer(0, true)
          await new Promise(setImmediate)
        }
        await Promise.all(done)
        expect(waiting.size).toBe(0)
        expect({ isBound: broker.isBound, isRouted: router.has('a') }).toEqual({
          isBound: listening > 0,
          isRouted: listening > 0,
        })
        for (; listening > 0; listening--) interest.release('a')
        while (broker.isBusy) broker.answer(0, true)
        expect(broker.isBound).toBe(false)
      }),
      { numRuns: 300 },
    )
  })
})

/** A broker that answers when a test says so, and knows whether it is bound: from when a bind is answered until an unbind is asked for. */
class UnhurriedBroker {
  readonly #asked: { kind: 'bind' | 'unbind'; settle: (isAccepted: boolean) => void }[] = []
  isBound = false
  mostAtOnce = 0

  get isBusy(): boolean {
    return this.#asked.length > 0
  }

  bind = (): Promise<void> => this.#ask('bind')

  unbind = (): Promise<void> => {
    this.isBound = false
    return this.#ask('unbind')
  }

  /** Answers one of the calls that wait. An unbind that fails has nothing to leave behind here. */
  answer(index: number, isAccepted: boolean): void {
    const [asked] = this.#asked.splice(index % Math.max(this.#asked.length, 1), 1)
    if (asked?.kind === 'bind' && isAccepted) this.isBound = true
    asked?.settle(isAccepted)
  }

  #ask(kind: 'bind' | 'unbind'): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ kind, settle: (isAccepted) => (isAccepted ? resolve() : reject(new Error('refused'))) })
      this.mostAtOnce = Math.max(this.mostAtOnce, this.#asked.length)
    })
  }
}
