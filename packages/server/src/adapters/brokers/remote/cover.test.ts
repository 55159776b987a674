import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { contains, matches } from 'webmq-client/protocol'
import { SubscriptionCover } from './cover.js'

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** A broker that does what it was asked in order, when it is told to go on. */
class FakeBroker {
  readonly live = new Set<string>()
  readonly refuses = new Set<string>()
  /** What was asked for, over the whole life. */
  readonly asked: string[] = []
  readonly #waiting: (() => void)[] = []
  readonly cover = new SubscriptionCover({
    subscriptionsOf: (pattern) => [pattern],
    subscribe: (pattern) => this.#ask(`+${pattern}`, pattern, () => this.live.add(pattern)),
    unsubscribe: (pattern) => this.#ask(`-${pattern}`, pattern, () => this.live.delete(pattern)),
  })

  async #ask(request: string, pattern: string, done: () => void): Promise<void> {
    this.asked.push(request)
    await new Promise<void>((resolve, reject) => {
      this.#waiting.push(() => {
        if (this.refuses.has(pattern)) return reject(new Error(`not allowed: ${pattern}`))
        done()
        resolve()
      })
    })
  }

  /** Answers the oldest request. */
  async step(): Promise<boolean> {
    // Lets everything go on that waits for the last answer, and ask what it asks next.
    await turn()
    const answer = this.#waiting.shift()
    answer?.()
    await turn()
    return answer !== undefined
  }

  async settle(): Promise<void> {
    while (await this.step());
  }
}

const words = fc.constantFrom('a', 'b', '*')
const patterns = fc
  .tuple(fc.array(words, { minLength: 1, maxLength: 3 }), fc.boolean())
  .map(([all, hasHash]) => (hasHash ? [...all, '#'] : all).join('.'))
const keys = ['a', 'b', 'a.a', 'a.b', 'b.a', 'b.b', 'a.a.a', 'a.b.a', 'b.b.b', 'a.b.c.d']

function comesOver(live: Iterable<string>, key: string): boolean {
  return [...live].some((pattern) => matches(pattern, key))
}

describe('SubscriptionCover', () => {
  it('subscribes once for patterns of which one contains the others, whatever came first', async () => {
    for (const order of [
      ['a.#', 'a.b', 'a.*'],
      ['a.b', 'a.*', 'a.#'],
    ]) {
      const broker = new FakeBroker()
      const bound = Promise.all(order.map((pattern) => broker.cover.bind(pattern)))
      await broker.settle()
      await bound
      expect([...broker.live]).toEqual(['a.#'])
    }
  })

  it('ends a narrower subscription after the broader one is live', async () => {
    const broker = new FakeBroker()
    const bound = [broker.cover.bind('a.b')]
    await broker.settle()
    bound.push(broker.cover.bind('#'))
    await broker.settle()
    await Promise.all(bound)
    expect(broker.asked).toEqual(['+a.b', '+#', '-a.b'])
    expect([...broker.live]).toEqual(['#'])
  })

  it('brings the narrower ones back before it ends the broader one', async () => {
    const broker = new FakeBroker()
    const bound = ['#', 'a.b', 'a.*', 'c'].map((pattern) => broker.cover.bind(pattern))
    await broker.settle()
    await Promise.all(bound)
    const unbound = broker.cover.unbind('#')
    await broker.settle()
    await unbound
    expect(broker.asked).toEqual(['+#', '+a.*', '+c', '-#'])
    expect([...broker.live]).toEqual(['a.*', 'c'])
  })

  it('is bound only when the broader subscription is live', async () => {
    const broker = new FakeBroker()
    let isBound = false
    const bound = [broker.cover.bind('#'), broker.cover.bind('a').then(() => (isBound = true))]
    await turn()
    expect(isBound).toBe(false)
    await broker.settle()
    await Promise.all(bound)
    expect(isBound).toBe(true)
  })

  it('stays with a broader subscription that is wanted again before it has ended', async () => {
    const broker = new FakeBroker()
    const { cover } = broker
    const first = Promise.all([cover.bind('#'), cover.bind('a'), cover.bind('b')])
    await broker.settle()
    await first
    const second = Promise.all([cover.unbind('#'), cover.bind('#')])
    await broker.settle()
    await second
    expect(broker.asked).not.toContain('-#')
    expect([...broker.live]).toEqual(['#'])
  })

  it('does without a broader subscription that is refused', async () => {
    const broker = new FakeBroker()
    broker.refuses.add('#')
    const bound = Promise.allSettled(['#', 'a.b', '*.c'].map((pattern) => broker.cover.bind(pattern)))
    await broker.settle()
    expect((await bound).map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled'])
    expect([...broker.live].sort()).toEqual(['*.c', 'a.b'])
  })

  it('keeps a broader subscription when one that it stands for is refused', async () => {
    const broker = new FakeBroker()
    const bound = Promise.all(['#', 'a.b'].map((pattern) => broker.cover.bind(pattern)))
    await broker.settle()
    await bound
    broker.refuses.add('a.b')
    const unbound = expect(broker.cover.unbind('#')).rejects.toThrow('not allowed')
    await broker.settle()
    await unbound
    expect([...broker.live]).toEqual(['#'])
  })

  it('misses nothing that is bound at any time, and has nothing to spare when it is at rest', async () => {
    const steps = fc.array(
      fc.oneof(
        { weight: 3, arbitrary: fc.record({ toggle: patterns }) },
        { weight: 2, arbitrary: fc.record({ answers: fc.integer({ min: 1, max: 3 }) }) },
      ),
      { maxLength: 40 },
    )
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const broker = new FakeBroker()
        const bound = new Set<string>()
        const wanted = new Set<string>()
        const busy = new Set<string>()
        const calls: Promise<unknown>[] = []
        const assertNothingMissed = () => {
          for (const pattern of bound) {
            for (const key of keys.filter((each) => matches(pattern, each))) {
              expect(comesOver(broker.live, key), `${key} of ${pattern}`).toBe(true)
            }
          }
        }
        for (const step of all) {
          if ('answers' in step) {
            for (let answer = 0; answer < step.answers; answer++) {
              await broker.step()
              assertNothingMissed()
            }
          } else if (wanted.has(step.toggle)) {
            wanted.delete(step.toggle)
            bound.delete(step.toggle)
            calls.push(broker.cover.unbind(step.toggle))
          } else if (!busy.has(step.toggle)) {
            const pattern = step.toggle
            wanted.add(pattern)
            busy.add(pattern)
            calls.push(
              broker.cover.bind(pattern).then(() => {
                busy.delete(pattern)
                if (wanted.has(pattern)) bound.add(pattern)
              }),
            )
          }
        }
        while (await broker.step()) assertNothingMissed()
        await Promise.all(calls)
        expect(bound).toEqual(wanted)
        assertNothingMissed()
        for (const one of broker.live) {
          expect(
            [...wanted].some((pattern) => pattern === one),
            one,
          ).toBe(true)
          for (const other of broker.live) expect(one !== other && contains(one, other), `${one} ${other}`).toBe(false)
        }
        const ended = [...wanted].map((pattern) => broker.cover.unbind(pattern))
        await broker.settle()
        await Promise.all(ended)
        expect(broker.live.size).toBe(0)
      }),
      { numRuns: 300 },
    )
  })
})
