import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { historyOf } from 'webmq-conformance'
import type { Position, Reader, ReadRange, ReadResult } from '../../../kernel/ports/broker.js'
import { HistoryLog } from './history-log.js'

let nowMs = 0
beforeEach(() => {
  nowMs = 1_000_000
})

function follow(log: HistoryLog, offset: number, fingerprint: number, payload: Uint8Array, timeMs: number): void {
  log.follow({ key: 'k', payload, isBinary: false, offset, fingerprint, timeMs })
}

function logOf(rules: readonly string[], bounds: { historyMaxMessages?: number; historyMaxBytes?: number } = {}) {
  const log = new HistoryLog({ ...historyOf(...rules), ...bounds }, () => nowMs)
  log.restart('epoch')
  return log
}

function append(log: HistoryLog, key: string, text: string): number {
  return log.append({ key, payload: Buffer.from(text), isBinary: false }).offset
}

/** A position of the log as it is, of another one with a fingerprint of its own. */
function at(log: HistoryLog, offset: number, epoch = log.epoch): Position {
  return epoch === log.epoch ? log.positionAt(offset) : { epoch, offset, fingerprint: 1 }
}

/** A read that is answered at once. */
function readNow(log: HistoryLog, ...parameters: Parameters<HistoryLog['read']>): ReadResult {
  const result = log.read(...parameters)
  if (result instanceof Promise) throw new Error('it takes time')
  return result
}

function read(log: HistoryLog, ...parameters: Parameters<HistoryLog['read']>) {
  return textsOf(readNow(log, ...parameters))
}

function textsOf({ messages, ...rest }: ReadResult) {
  return { ...rest, texts: messages.map(({ payload }) => Buffer.from(payload).toString()) }
}

/** One turn of the event loop. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Takes several turns to look through. */
const LONG = 200_000
/** A pattern that matches no key of a long log, and the keys are made to compare long. */
const DEAR_PATTERN = '#.a.a.a.a.a.a.a.a.a.a.b.#'
const DEAR_KEY = Array.from({ length: 31 }, () => 'a').join('.')

function longLog(count = LONG): HistoryLog {
  const log = logOf(['#=1000000'], { historyMaxMessages: count })
  for (let index = 0; index < count; index++) append(log, 'busy', 'x')
  return log
}

describe('HistoryLog', () => {
  it('gives streams as their messages, as their texts, or as a fold needs them', () => {
    const log = logOf(['#=3'])
    const part = (key: string, place: string, text = place, isInterim?: true) =>
      log.append({
        key,
        payload: Buffer.from(text),
        isBinary: false,
        attributes: { stream: place, ...(isInterim && { isInterim }) },
      }).offset
    part('k', 'a:0:start')
    part('k', 'a:1:append')
    part('k', 'a:1:text', '{"upTo":2}\ninterim', true)
    part('other', 'a:1:append')
    const end = part('k', 'a:2:end')
    part('k', 'b:0:start')
    part('k', 'a:2:text', `{"upTo":${end}}\nfirst`)
    part('k', 'a:2:text', `{"upTo":${end}}\nagain`)
    append(log, 'k', 'plain')
    part('k', 'b:1:append')
    expect(read(log, { view: 'texts' }, ['k']).texts).toEqual(['first', 'plain', 'b:1:append'])
    expect(read(log, { view: 'texts', last: 1, before: at(log, 9) }, ['k']).texts).toEqual(['first'])
    expect(read(log, { view: 'texts' }, ['#']).texts).toEqual([
      'a:1:append',
      'b:0:start',
      'first',
      'plain',
      'b:1:append',
    ])
    expect(read(log, {}, ['k']).texts).toEqual(['b:0:start', 'plain', 'b:1:append'])
    expect(read(log, { since: at(log, 1) }, ['k'])).toMatchObject({
      texts: ['a:1:append', 'a:2:end', 'b:0:start', 'plain', 'b:1:append'],
      position: { offset: 10 },
      isPartial: false,
    })
    const logged = ['b:0:start', `{"upTo":${end}}\nfirst`, `{"upTo":${end}}\nagain`, 'plain', 'b:1:append']
    expect(read(log, { view: 'log' }, ['k']).texts).toEqual(logged)
    expect(read(log, { view: 'log', since: at(log, 4) }, ['k']).texts).toEqual(['a:2:end', ...logged])
  })

  it('says refused for reads across a refused message, to patterns that its key matches', () => {
    const log = logOf(['#=100'])
    for (const text of ['a', 'b']) append(log, 'k', text)
    log.refuse(3, 3, 'k')
    append(log, 'other', 'c')
    const since = (offset: number) => ({ since: at(log, offset) })
    expect(read(log, since(1), ['k'])).toMatchObject({ texts: ['b'], gap: 'refused', position: { offset: 4 } })
    expect(read(log, since(2), ['#'])).toMatchObject({ texts: ['c'], gap: 'refused' })
    expect(read(log, since(2), ['other']).gap).toBeUndefined()
    // Its position is one like any other.
    expect(read(log, since(3), ['#'])).toMatchObject({ texts: ['c'], position: { offset: 4 } })
    expect(read(log, since(3), ['#']).gap).toBeUndefined()
    expect(read(log, { ...since(0), limit: 1 }, ['#']).gap).toBeUndefined()
    log.refuse(5, 5, '#')
    expect(read(log, since(4), ['other'])).toMatchObject({ gap: 'refused', position: { offset: 5 } })
    log.restart('next')
    expect(read(log, { since: at(log, 0) }, ['#']).gap).toBeUndefined()
  })

  it('says refused to everybody when too many messages were refused to remember each', () => {
    const log = logOf(['#=100'])
    for (let offset = 1; offset <= 1_001; offset++) log.refuse(offset, offset, 'k')
    expect(read(log, { since: at(log, 0) }, ['other']).gap).toBe('refused')
    expect(read(log, { since: at(log, 1) }, ['other']).gap).toBeUndefined()
    expect(read(log, { since: at(log, 1) }, ['k']).gap).toBe('refused')
  })

  it('says gap when, and only when, something after the position is gone', () => {
    const log = logOf(['#=100'], { historyMaxMessages: 3 })
    for (const text of ['a', 'b', 'c', 'd', 'e']) append(log, 'k', text)
    expect(read(log, { since: at(log, 2) }, ['k'])).toEqual({
      texts: ['c', 'd', 'e'],
      position: at(log, 5),
      isPartial: false,
    })
    expect(read(log, { since: at(log, 1) }, ['k'])).toMatchObject({
      texts: ['c', 'd', 'e'],
      gap: 'history-expired',
    })
    expect(read(log, { since: at(log, 3, 'other') }, ['k']).gap).toBe('epoch-changed')
  })

  it('gives to a position of another epoch nothing that is left of earlier epochs', () => {
    const log = logOf(['#=100'])
    for (const text of ['old', 'older']) append(log, 'k', text)
    const { offset } = log.position
    log.began(offset)
    append(log, 'k', 'new')
    expect(read(log, { since: at(log, 1, 'other') }, ['k'])).toMatchObject({
      texts: ['new'],
      gap: 'epoch-changed',
    })
    expect(read(log, { last: 10 }, ['k']).texts).toEqual(['old', 'older', 'new'])
  })

  it('says gap for a position at which it has another message, or none', () => {
    const log = logOf(['#=100'])
    log.restart('epoch', 5, 55)
    follow(log, 6, 66, Buffer.from('a'), nowMs)
    log.skipTo(7, 77)
    follow(log, 9, 99, Buffer.from('b'), nowMs)
    const gapAt = (offset: number, fingerprint: number) =>
      readNow(log, { since: { epoch: 'epoch', offset, fingerprint } }, ['quiet']).gap
    for (const offset of [5, 6, 7, 9]) {
      expect(gapAt(offset, offset * 11)).toBeUndefined()
      for (const other of [0, 1]) expect(gapAt(offset, other)).toBe('broker-lost')
    }
    // Nothing stands at 8: it is behind what stands before.
    expect([gapAt(8, 77), gapAt(8, 88)]).toEqual([undefined, 'broker-lost'])
    expect(gapAt(4, 44)).toBe('history-expired')
    expect(readNow(log, { since: { epoch: 'epoch', offset: 6, fingerprint: 1 } }, ['k']).messages).toHaveLength(1)
  })

  it('knows what stands before the first message that it holds, unless it began there without knowing', () => {
    const log = logOf(['#=100'], { historyMaxMessages: 2 })
    log.restart('epoch', 5)
    const gapAt = (offset: number, fingerprint: number) =>
      readNow(log, { since: { epoch: 'epoch', offset, fingerprint } }, ['k']).gap
    for (const fingerprint of [0, 55]) expect(gapAt(5, fingerprint)).toBe('history-expired')
    for (let offset = 6; offset <= 9; offset++) follow(log, offset, offset * 11, Buffer.from('a'), nowMs)
    expect([gapAt(7, 77), gapAt(7, 78), gapAt(6, 66)]).toEqual([undefined, 'broker-lost', 'history-expired'])
    expect(log.position).toEqual({ epoch: 'epoch', offset: 9, fingerprint: 99 })
    expect(log.positionAt(6).fingerprint).toBe(66)
  })

  // A node that was behind called its own epoch another one, and replayed its whole log. Such an offset is no other log.
  it('refuses a position of its epoch beyond its end', () => {
    const log = logOf(['#=100'])
    append(log, 'k', 'a')
    for (const range of [{}, { last: 1 }, { rewindMs: 60_000 }])
      expect(() => read(log, { ...range, since: at(log, 2) }, ['k'])).toThrow(
        expect.objectContaining({ code: 'E_POSITION_INVALID' }),
      )
  })

  it('gives nothing at or before a position of its epoch, whatever happened to the log', () => {
    const step = fc.oneof(
      fc.record({ name: fc.constant('append' as const) }),
      fc.record({ name: fc.constant('interrupt' as const) }),
      fc.record({ name: fc.constant('skip' as const), by: fc.nat(5) }),
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
          else if (step.name === 'skip') log.skipTo(end + step.by, 7)
          else log.restart('epoch', end + step.by)
        }
        const ask = () => readNow(log, { ...range, since: at(log, offset) }, ['#'])
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
    expect(read(log, { since: at(log, 0) }, ['#'])).toMatchObject({
      texts: ['a'],
      gap: 'no-history',
    })
    expect(read(log, { last: 5 }, ['news'])).toMatchObject({ texts: [], gap: 'no-history' })
    expect(read(log, { since: at(log, 0) }, ['chat.*']).gap).toBeUndefined()
  })

  it('gives no more of a key than its rule says, unless it is asked for what came after a position', () => {
    const log = logOf(['k=2', 'l.#=100'])
    for (const text of ['a', 'b', 'c']) append(log, 'k', text)
    expect(read(log, { last: 10 }, ['k']).texts).toEqual(['b', 'c'])
    expect(read(log, { rewindMs: 60_000 }, ['k']).texts).toEqual(['b', 'c'])
    expect(read(log, { since: at(log, 0) }, ['k']).texts).toEqual(['a', 'b', 'c'])
  })

  it('gives nothing older than its rule says, and tells who continues from before', () => {
    const log = logOf(['k=100,10s', 'l=100'])
    const first = append(log, 'k', 'old')
    append(log, 'l', 'old too')
    nowMs += 11_000
    append(log, 'k', 'new')
    expect(read(log, { last: 10 }, ['k'])).toMatchObject({ texts: ['new'] })
    expect(read(log, { last: 10 }, ['k']).gap).toBeUndefined()
    expect(read(log, { since: at(log, 0) }, ['k'])).toMatchObject({
      texts: ['new'],
      gap: 'history-expired',
    })
    expect(read(log, { since: at(log, first) }, ['k']).gap).toBeUndefined()
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

  // Symptom: after one message of a node whose clock was an hour ahead, `rewind` gave all of that hour. Cause: log times never
  // decrease.
  it('takes a message of a clock that is ahead for one of now', () => {
    const log = logOf(['#=100'])
    follow(log, 1, 1, Buffer.from('ahead'), nowMs + 3_600_000)
    nowMs += 10_000
    follow(log, 2, 2, Buffer.from('later'), nowMs)
    expect(read(log, { rewindMs: 5_000 }, ['k']).texts).toEqual(['later'])
  })

  it('says gap after an offset, and over a time, in which it was interrupted', () => {
    const log = logOf(['#=100'])
    const since = (offset: number) => read(log, { since: at(log, offset) }, ['k'])
    append(log, 'k', 'a')
    nowMs += 1_000
    log.interrupt()
    const { offset } = log.position
    expect(since(1)).toMatchObject({ texts: [], gap: 'broker-lost', position: at(log, offset) })
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

  it.each<[string, ReadRange]>([
    ['the newest messages', { last: 1 }],
    ['all since a position', { since: { epoch: 'epoch', offset: 0, fingerprint: 0 } }],
    ['all within a time', { rewindMs: 60_000 }],
  ])('looks at a bounded number of messages per turn, reading %s', async (_what, range) => {
    const log = logOf(['#=1000000'], { historyMaxMessages: LONG })
    append(log, 'quiet', 'found')
    for (let index = 1; index < LONG; index++) append(log, 'busy', 'x')
    let result: ReadResult | undefined
    const done = Promise.resolve(log.read(range, ['quiet'])).then((read) => {
      result = read
    })
    let turns = 0
    for (; result === undefined; turns++) await nextTurn()
    await done
    expect(turns).toBeGreaterThan(LONG / 32_768 - 1)
    expect(result === undefined ? undefined : textsOf(result)).toEqual({
      texts: ['found'],
      position: log.position,
      isPartial: false,
    })
  })

  // Symptom: three listens of 145 bytes stopped a node for 2.1 s. Cause: comparisons of a read were not counted.
  it('counts what a comparison costs, not only the messages', async () => {
    const log = logOf(['#=1000000'], { historyMaxMessages: LONG })
    for (let index = 0; index < 5_000; index++) append(log, DEAR_KEY, 'x')
    let isDone = false
    const spent: number[] = []
    const note = (units: number) => void spent.push(units)
    const meter = { charge: note, spend: note }
    const done = Promise.resolve(log.read({ last: 1 }, [DEAR_PATTERN], { isClosed: false, meter })).then(() => {
      isDone = true
    })
    let turns = 0
    for (; !isDone; turns++) await nextTurn()
    await done
    expect(turns).toBeGreaterThan(20)
    expect(Math.max(...spent)).toBeLessThan(300)
    expect(spent.reduce((sum, units) => sum + units, 0)).toBeGreaterThan(20_000)
  })

  it('answers a short read while long ones go on, and goes on with several by turns', async () => {
    const log = longLog()
    const order: string[] = []
    const begin = async (name: string, reader: Reader, range: ReadRange, pattern: string) => {
      await log.read(range, [pattern], reader)
      order.push(name)
    }
    const [greedy, other] = [{ isClosed: false }, { isClosed: false }]
    const done = [
      ...Array.from({ length: 4 }, (_, index) => begin(`greedy ${index}`, greedy, { last: 1 }, '*.quiet')),
      begin('other', other, { last: 1 }, '*.quiet'),
      begin('short', { isClosed: false }, { last: 1 }, 'busy'),
    ]
    await Promise.all(done)
    expect(order.slice(0, 2)).toEqual(['short', 'other'])
  })

  it('waits until its reader has paid, and stops when its reader is gone', async () => {
    const log = longLog()
    let pay: () => void = () => undefined
    const reader = {
      isClosed: false,
      meter: {
        charge: () => undefined,
        spend: () =>
          new Promise<void>((resolve) => {
            pay = resolve
          }),
      },
    }
    let result: ReadResult | undefined
    const done = Promise.resolve(log.read({ since: at(log, 0) }, ['quiet'], reader)).then((read) => {
      result = read
    })
    for (let turn = 0; turn < 50; turn++) await nextTurn()
    expect(result).toBeUndefined()
    pay()
    for (let turn = 0; turn < 50; turn++) await nextTurn()
    expect(result).toBeUndefined()
    reader.isClosed = true
    pay()
    await done
    expect(result).toMatchObject({ messages: [], isPartial: true })
    expect(result?.position.offset).toBeLessThan(LONG / 2)
  })

  it('ends where the log ended when the read began, and says gap when the log dropped what it had not looked at', async () => {
    const log = longLog()
    append(log, 'quiet', 'old')
    const { position } = log
    const since = log.read({ since: at(log, 1) }, ['quiet'])
    const newest = log.read({ last: 5 }, ['quiet'])
    const rewound = log.read({ rewindMs: 60_000 }, ['quiet'])
    for (let index = 0; index < 150_000; index++) append(log, 'busy', 'x')
    append(log, 'quiet', 'new')
    const whole = { texts: ['old'], position, isPartial: false }
    expect(textsOf(await since)).toEqual({ ...whole, gap: 'history-expired' })
    expect(textsOf(await rewound)).toEqual({ ...whole, gap: 'history-expired' })
    expect(textsOf(await newest)).toEqual(whole)
    for (let index = 0; index < LONG; index++) append(log, 'busy', 'x')
    expect(read(log, { last: 1, limit: 1 }, ['busy']).texts).toEqual(['x'])
  })

  it('begins a read again when the log restarts', async () => {
    const log = longLog()
    const range = { since: at(log, 1) }
    const [first, second] = [log.read(range, ['quiet']), log.read({ last: 1 }, ['quiet'])]
    log.restart('next')
    append(log, 'quiet', 'a')
    const whole = { texts: ['a'], position: log.position, isPartial: false }
    expect(textsOf(await first)).toEqual({ ...whole, gap: 'epoch-changed' })
    expect(textsOf(await second)).toEqual(whole)
  })

  it('sends a read on whose position is after the end of the log that was restarted meanwhile', async () => {
    const log = longLog()
    const read = log.read({ since: at(log, 10) }, ['quiet'])
    log.restart('epoch', 5)
    await expect(read).rejects.toMatchObject({ code: 'E_NODE_BEHIND' })
  })

  it('begins anew, with another epoch', () => {
    const log = logOf(['#=100'])
    append(log, 'k', 'a')
    log.restart('next', 41, 9)
    expect(log.position).toMatchObject({ epoch: 'next', offset: 41 })
    follow(log, 45, 45, Buffer.from('b'), nowMs)
    expect(read(log, { since: at(log, 41) }, ['k'])).toEqual({
      texts: ['b'],
      position: { epoch: 'next', offset: 45, fingerprint: 45 },
      isPartial: false,
    })
    expect(read(log, { since: at(log, 40) }, ['k']).gap).toBe('history-expired')
  })
})
