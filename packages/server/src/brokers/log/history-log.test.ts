import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { historyOf } from 'webmq-conformance'
import { HistoryLog } from './history-log.js'

let nowMs = 0
beforeEach(() => {
  nowMs = 1_000_000
})

function logOf(rules: readonly string[], bounds: { historyMaxMessages?: number; historyMaxBytes?: number } = {}) {
  const log = new HistoryLog({ ...historyOf(...rules), ...bounds }, () => nowMs)
  log.restart('epoch')
  return log
}

function append(log: HistoryLog, key: string, text: string): number {
  return log.append(key, Buffer.from(text), false).offset
}

function read(log: HistoryLog, ...parameters: Parameters<HistoryLog['read']>) {
  const { messages, ...rest } = log.read(...parameters)
  return { ...rest, texts: messages.map(({ payload }) => Buffer.from(payload).toString()) }
}

describe('HistoryLog', () => {
  it('says gap when, and only when, something after the position is gone', () => {
    const log = logOf(['#=100'], { historyMaxMessages: 3 })
    for (const text of ['a', 'b', 'c', 'd', 'e']) append(log, 'k', text)
    expect(read(log, { since: { epoch: 'epoch', offset: 2 } }, ['k'])).toEqual({
      texts: ['c', 'd', 'e'],
      position: { epoch: 'epoch', offset: 5 },
      isPartial: false,
    })
    expect(read(log, { since: { epoch: 'epoch', offset: 1 } }, ['k'])).toMatchObject({
      texts: ['c', 'd', 'e'],
      gap: 'history-expired',
    })
    expect(read(log, { since: { epoch: 'other', offset: 3 } }, ['k']).gap).toBe('epoch-changed')
  })

  // A node that was behind called its own epoch another one, and replayed its whole log. Such an offset is no other log.
  it('refuses a position of its epoch beyond its end', () => {
    const log = logOf(['#=100'])
    append(log, 'k', 'a')
    for (const range of [{}, { last: 1 }, { rewindMs: 60_000 }])
      expect(() => read(log, { ...range, since: { epoch: 'epoch', offset: 2 } }, ['k'])).toThrow(
        expect.objectContaining({ code: 'E_POSITION_INVALID' }),
      )
  })

  it('says gap to those whose position is among lost offsets, and to nobody else', () => {
    const log = logOf(['#=100'], { historyMaxMessages: 3 })
    const since = (offset: number) => read(log, { since: { epoch: 'epoch', offset } }, ['k'])
    append(log, 'k', 'a')
    log.fence(10, nowMs, true)
    log.fence(20, nowMs, true)
    log.follow(21, 'k', Buffer.from('b'), false, nowMs)
    log.skipTo(25)
    log.fence(22, nowMs, false)
    for (const offset of [2, 9, 19]) expect(since(offset)).toMatchObject({ texts: ['b'], gap: 'history-expired' })
    for (const offset of [0, 1, 20, 21, 23, 25]) expect(since(offset).gap).toBeUndefined()
    for (const text of ['c', 'd', 'e']) append(log, 'k', text)
    expect(since(25)).toEqual({ texts: ['c', 'd', 'e'], position: log.position, isPartial: false })
    log.restart('next', 0)
    log.skipTo(5)
    expect(read(log, { since: { epoch: 'next', offset: 3 } }, ['k']).gap).toBeUndefined()
  })

  it('says gap at every place before a fence behind which messages may be missing, and to nobody else', () => {
    const log = logOf(['#=100'])
    const since = (offset: number) => read(log, { since: { epoch: 'epoch', offset } }, ['k'])
    for (const text of ['a', 'b']) append(log, 'k', text)
    nowMs += 1_000
    log.fence(10, nowMs, false)
    log.follow(11, 'k', Buffer.from('c'), false, nowMs)
    expect(since(1)).toMatchObject({ texts: ['b', 'c'], gap: 'broker-lost' })
    for (const offset of [2, 3, 9]) expect(since(offset)).toMatchObject({ texts: ['c'], gap: 'broker-lost' })
    expect(since(10)).toEqual({ texts: ['c'], position: { epoch: 'epoch', offset: 11 }, isPartial: false })
    nowMs += 1_000
    expect(read(log, { rewindMs: 1_500 }, ['k'])).toMatchObject({ texts: ['c'], gap: 'broker-lost' })
    expect(read(log, { rewindMs: 500 }, ['k']).gap).toBeUndefined()
  })

  it('gives nothing at or before a position of its epoch, whatever happened to the log', () => {
    const step = fc.oneof(
      fc.record({ name: fc.constant('append' as const) }),
      fc.record({ name: fc.constant('interrupt' as const) }),
      fc.record({ name: fc.constant('skip' as const), by: fc.nat(5) }),
      fc.record({ name: fc.constant('fence' as const), by: fc.nat(5), isComplete: fc.boolean() }),
      fc.record({ name: fc.constant('restart' as const), by: fc.nat(5) }),
    )
    const narrowed = fc.record(
      { last: fc.nat(8), limit: fc.integer({ min: 1, max: 8 }), rewindMs: fc.nat(10) },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.nat(80), narrowed, (steps, offset, range) => {
        const log = logOf(['#=1000'], { historyMaxMessages: 5 })
        for (const step of steps) {
          nowMs++
          const end = log.position.offset
          if (step.name === 'append') append(log, 'k', 'x')
          else if (step.name === 'interrupt') log.interrupt()
          else if (step.name === 'skip') log.skipTo(end + step.by)
          else if (step.name === 'fence') log.fence(end + step.by, nowMs, step.isComplete)
          else log.restart('epoch', end + step.by)
        }
        const ask = () => log.read({ ...range, since: { epoch: 'epoch', offset } }, ['#'])
        if (offset > log.position.offset) {
          expect(ask).toThrow()
          return
        }
        const { messages, position, gap } = ask()
        expect(gap).not.toBe('epoch-changed')
        for (const { position } of messages) expect(position?.offset).toBeGreaterThan(offset)
        expect(position.offset).toBeGreaterThanOrEqual(offset)
      }),
    )
  })

  it('says no-history for a pattern of which not everything is logged, and gives what is', () => {
    const log = logOf(['chat.#=100'])
    append(log, 'chat.1', 'a')
    expect(log.logs('news')).toBe(false)
    expect(read(log, { since: { epoch: 'epoch', offset: 0 } }, ['#'])).toMatchObject({
      texts: ['a'],
      gap: 'no-history',
    })
    expect(read(log, { last: 5 }, ['news'])).toMatchObject({ texts: [], gap: 'no-history' })
    expect(read(log, { since: { epoch: 'epoch', offset: 0 } }, ['chat.*']).gap).toBeUndefined()
  })

  it('gives no more of a key than its rule says, unless it is asked for what came after a position', () => {
    const log = logOf(['k=2', 'l.#=100'])
    for (const text of ['a', 'b', 'c']) append(log, 'k', text)
    expect(read(log, { last: 10 }, ['k']).texts).toEqual(['b', 'c'])
    expect(read(log, { rewindMs: 60_000 }, ['k']).texts).toEqual(['b', 'c'])
    expect(read(log, { since: { epoch: 'epoch', offset: 0 } }, ['k']).texts).toEqual(['a', 'b', 'c'])
  })

  it('gives nothing older than its rule says, and tells who continues from before', () => {
    const log = logOf(['k=100,10s', 'l=100'])
    const first = append(log, 'k', 'old')
    append(log, 'l', 'old too')
    nowMs += 11_000
    append(log, 'k', 'new')
    expect(read(log, { last: 10 }, ['k'])).toMatchObject({ texts: ['new'] })
    expect(read(log, { last: 10 }, ['k']).gap).toBeUndefined()
    expect(read(log, { since: { epoch: 'epoch', offset: 0 } }, ['k'])).toMatchObject({
      texts: ['new'],
      gap: 'history-expired',
    })
    expect(read(log, { since: { epoch: 'epoch', offset: first } }, ['k']).gap).toBeUndefined()
    expect(read(log, { last: 10 }, ['l']).texts).toEqual(['old too'])
  })

  it('gives what was logged within a time, and says when some of that is gone', () => {
    const log = logOf(['#=100'], { historyMaxMessages: 3 })
    for (const text of ['a', 'b', 'c', 'd', 'e']) {
      append(log, 'k', text)
      nowMs += 1_000
    }
    expect(read(log, { rewindMs: 2_000 }, ['k'])).toMatchObject({ texts: ['d', 'e'] })
    expect(read(log, { rewindMs: 2_000 }, ['k']).gap).toBeUndefined()
    expect(read(log, { rewindMs: 4_500 }, ['k'])).toMatchObject({ texts: ['c', 'd', 'e'], gap: 'history-expired' })
    expect(read(log, { rewindMs: 0 }, ['k']).texts).toEqual([])
  })

  it('says gap after an offset, and over a time, in which it was interrupted', () => {
    const log = logOf(['#=100'])
    const since = (offset: number) => read(log, { since: { epoch: 'epoch', offset } }, ['k'])
    append(log, 'k', 'a')
    nowMs += 1_000
    log.interrupt()
    const { offset } = log.position
    expect(since(1)).toMatchObject({ texts: [], gap: 'broker-lost', position: { epoch: 'epoch', offset } })
    nowMs += 1_000
    append(log, 'k', 'b')
    expect(since(0)).toMatchObject({ texts: ['a', 'b'], gap: 'broker-lost' })
    expect(since(1)).toMatchObject({ texts: ['b'], gap: 'broker-lost' })
    expect(since(offset)).toEqual({ texts: ['b'], position: log.position, isPartial: false })
    expect(read(log, { rewindMs: 1_500 }, ['k'])).toMatchObject({ texts: ['b'], gap: 'broker-lost' })
    expect(read(log, { rewindMs: 500 }, ['k']).gap).toBeUndefined()
    expect(read(log, { last: 2 }, ['k'])).toMatchObject({ texts: ['a', 'b'] })
    log.restart('next')
    expect(read(log, { rewindMs: 1_500 }, ['k']).gap).toBeUndefined()
  })

  it('reads in pages that together are the whole', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 80 }),
        fc.constantFrom('a', 'b', '#', '*'),
        fc.integer({ min: 1, max: 7 }),
        fc.nat(90),
        (keys, pattern, limit, last) => {
          const log = logOf(['#=1000'])
          for (const [index, key] of keys.entries()) append(log, key, `${index}`)
          const whole = read(log, { last }, [pattern]).texts
          const paged: string[] = []
          let page = read(log, { last, limit }, [pattern])
          paged.push(...page.texts)
          while (page.isPartial) {
            page = read(log, { since: page.position, limit }, [pattern])
            expect(page.gap).toBeUndefined()
            paged.push(...page.texts)
          }
          expect(paged).toEqual(whole)
          expect(page.position).toEqual(log.position)
        },
      ),
    )
  })

  it('looks at a bounded number of messages at once', () => {
    const log = logOf(['#=1000000'], { historyMaxMessages: 200_000 })
    for (let index = 0; index < 120_000; index++) append(log, 'busy', 'x')
    append(log, 'quiet', 'found')
    let page = read(log, { since: { epoch: 'epoch', offset: 0 } }, ['quiet'])
    expect(page).toMatchObject({ texts: [], isPartial: true })
    let count = 1
    for (; page.isPartial; count++) page = read(log, { since: page.position }, ['quiet'])
    expect(page.texts).toEqual(['found'])
    expect(count).toBe(3)
  })

  it('begins anew, with another epoch', () => {
    const log = logOf(['#=100'])
    append(log, 'k', 'a')
    log.restart('next', 41)
    expect(log.position).toEqual({ epoch: 'next', offset: 41 })
    log.follow(45, 'k', Buffer.from('b'), false, nowMs)
    expect(read(log, { since: { epoch: 'next', offset: 41 } }, ['k'])).toEqual({
      texts: ['b'],
      position: { epoch: 'next', offset: 45 },
      isPartial: false,
    })
    expect(read(log, { since: { epoch: 'next', offset: 40 } }, ['k']).gap).toBe('history-expired')
  })
})
