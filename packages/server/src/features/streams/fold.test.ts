import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { StreamKind } from 'webmq-client/protocol'
import { contentOf } from '../../../test/stream-content.js'
import { type RollUp, StreamFold } from './fold.js'
import { formatMark } from './shared-state.js'

interface Logged {
  readonly stream: string
  readonly sequence: number
  readonly kind: StreamKind
  readonly payload: unknown
}

function shown(fold: StreamFold) {
  const { stream, sequence, status, meta, result, isCut, appendCount, whole } = fold
  return { stream, sequence, status, meta, result, isCut, appendCount, whole }
}

function folded(messages: readonly Logged[], fold = new StreamFold()) {
  for (const { payload, ...place } of messages) fold.take(place, contentOf(payload))
  return fold
}

/** A stream as its writer sends it: each message follows the one before. */
function streamOf(stream: string, texts: readonly string[], end: StreamKind | undefined): Logged[] {
  const appends = texts.map((payload, index) => ({ stream, sequence: index + 1, kind: 'append' as const, payload }))
  const start: Logged = { stream, sequence: 0, kind: 'start', payload: { of: stream } }
  const last = end === undefined ? [] : [{ stream, sequence: texts.length + 1, kind: end, payload: 1 }]
  return [start, ...appends, ...last]
}

const streams = fc
  .array(
    fc.record({
      texts: fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 6 }),
      end: fc.constantFrom<StreamKind | undefined>('end', 'fail', 'stop', 'lost', undefined),
    }),
    { minLength: 2, maxLength: 2 },
  )
  .map((two) => two.map(({ texts, end }, index) => streamOf(`s${index}`, texts, end)))

/** One log of both writers, each in its own order, with copies. */
const logs = fc.tuple(streams, fc.infiniteStream(fc.nat({ max: 9 }))).map(([[first = [], second = []], choices]) => {
  const log: Logged[] = []
  const rest = [[...first], [...second]]
  for (const choice of choices) {
    const next = rest[choice % 2]?.shift() ?? rest[(choice + 1) % 2]?.shift()
    if (next === undefined) break
    log.push(next)
    const copy = log[choice * 3]
    if (choice > 6 && copy !== undefined) log.push(copy)
  }
  return { log, streams: [first, second] }
})

interface LoggedRollUp {
  readonly stream: string
  readonly sequence: number
  readonly rollUp: RollUp
}

/**
 * Streams of one key, one after the other. Nodes have written roll-ups of them: each has what the stream was somewhere, and
 * comes somewhere later, also within the next stream.
 */
const rolledUpLogs = fc
  .tuple(streams, fc.array(fc.tuple(fc.nat(), fc.nat({ max: 4 })), { minLength: 1, maxLength: 4 }))
  .map(([[first = [], second = []], places]) => {
    // The second one begins when the first has ended.
    const isEnded = first.length > 1 && first.at(-1)?.kind !== 'append'
    const messages = isEnded ? [...first, ...second] : first
    const log: (Logged | LoggedRollUp)[] = [...messages]
    for (const [place, delay] of places) {
      const upTo = (place % messages.length) + 1
      const fold = folded(messages.slice(0, upTo))
      const rolledUp = { stream: fold.stream ?? '', sequence: fold.sequence, rollUp: fold.rollUp(upTo) }
      const at = log.indexOf(messages[upTo - 1] as Logged) + 1
      log.splice(Math.min(log.length, at + delay), 0, rolledUp)
    }
    return { log, messages }
  })

function foldedLog(log: readonly (Logged | LoggedRollUp)[]): StreamFold {
  const fold = new StreamFold()
  for (const message of log) {
    if ('rollUp' in message) fold.takeRollUp(message.stream, message.sequence, message.rollUp)
    else fold.take(message, contentOf(message.payload))
  }
  return fold
}

describe('StreamFold', () => {
  it('is the same with roll-ups, wherever the log begins before what the last one has not', () => {
    fc.assert(
      fc.property(rolledUpLogs, fc.nat(), ({ log, messages }, cut) => {
        const whole = shown(folded(messages))
        expect(shown(foldedLog(log))).toEqual(whole)
        const last = log.findLastIndex((message) => 'rollUp' in message && message.stream === whole.stream)
        fc.pre(last !== -1)
        // What came between the roll-up and its place in the log is there.
        const next = (log[last]?.sequence ?? 0) + 1
        const behind = log.findIndex(({ stream, sequence }) => stream === whole.stream && sequence === next)
        const latest = behind === -1 ? last : Math.min(last, behind)
        expect(shown(foldedLog(log.slice(cut % (latest + 1))))).toEqual(whole)
      }),
    )
  })

  it('has the writers of a stream with many after a roll-up', () => {
    const log = Array.from({ length: 12 }, (_, sequence) => {
      const producer = { id: `p${sequence % 3}`, epoch: 1, sequence }
      const mark = formatMark({ token: `t${sequence}`, atMs: 1_000 + sequence, producer, streamSeq: `s${sequence}` })
      const kind: StreamKind = sequence === 0 ? 'start' : sequence === 11 ? 'close' : 'append'
      return { place: { stream: 's', sequence, kind, mark }, payload: sequence === 0 ? {} : Uint8Array.of(sequence) }
    })
    const of = (from: number, to?: number, fold = new StreamFold()) => {
      for (const { place, payload } of log.slice(from, to)) fold.take(place, contentOf(payload))
      return fold
    }
    const all = (fold: StreamFold) => ({ ...shown(fold), appendCount: 0, shared: fold.shared })
    for (const [upTo, behind] of [
      [5, 5],
      [5, 8],
      [11, 12],
      [12, 12],
    ] as const) {
      const { whole, ...head } = of(0, upTo).rollUp(upTo)
      const fold = of(Math.min(upTo, 4), behind)
      fold.takeRollUp('s', upTo - 1, { ...JSON.parse(JSON.stringify(head)), whole })
      expect(all(of(behind, undefined, fold))).toEqual(all(of(0)))
    }
  })

  it('puts what came meanwhile behind a roll-up, also after many appends', () => {
    const texts = Array.from({ length: 2_000 }, (_, index) => `${index} `)
    const log = streamOf('s', texts, undefined)
    const rollUp = folded(log.slice(0, 1_801)).rollUp(1_801)
    const fold = folded(log.slice(1_000, 1_900))
    expect(fold.whole).toBe(texts.slice(999, 1_899).join(''))
    expect(fold.takeRollUp('s', 1_800, rollUp)).toBe(true)
    expect(shown(folded(log.slice(1_900), fold))).toEqual(shown(folded(log)))
    // Its place is within what was joined: the next one will tell.
    const other = folded(log.slice(1_000))
    expect(other.takeRollUp('s', 1_100, folded(log.slice(0, 1_101)).rollUp(1_101))).toBe(false)
    expect(other.takeRollUp('s', 1_990, folded(log.slice(0, 1_991)).rollUp(1_991))).toBe(true)
    expect(shown(other)).toEqual(shown(folded(log)))
  })

  it('gives every node the same, wherever it began to fold and with whatever copies', () => {
    fc.assert(
      fc.property(logs, fc.nat({ max: 20 }), ({ log }, at) => {
        const whole = shown(folded(log))
        // One that has read up to somewhere, then hears the rest twice.
        const early = folded(log.slice(0, at))
        for (const message of log.slice(at)) folded([message, message], early)
        expect(shown(early)).toEqual(whole)
      }),
    )
  })

  it('never mixes two writers: it is what one of them has written, up to somewhere', () => {
    fc.assert(
      fc.property(logs, ({ log, streams }) => {
        const { stream, whole, isCut, sequence } = folded(log)
        const written = streams.find(([first]) => first?.stream === stream) ?? []
        const texts = written.filter(({ kind, sequence: n }) => kind === 'append' && n <= sequence)
        expect(isCut).toBe(false)
        expect(whole ?? '').toBe(texts.map(({ payload }) => payload).join(''))
      }),
    )
  })

  it('belongs to the first that began, until it has ended', () => {
    const [first, second] = [streamOf('a', ['1', '2'], 'end'), streamOf('b', ['x'], undefined)]
    const fold = folded([...first.slice(0, 2), ...second, ...first.slice(2)])
    expect(shown(fold)).toMatchObject({ stream: 'a', whole: '12', status: 'end' })
    expect(shown(folded(second, fold))).toMatchObject({ stream: 'b', whole: 'x', status: 'active' })
  })

  it('says that the log was cut, and goes on with what it has', () => {
    const log = streamOf('s', ['a', 'b', 'c'], 'end')
    expect(shown(folded(log.slice(2)))).toMatchObject({ stream: 's', isCut: true, whole: 'bc', status: 'end' })
    expect(shown(folded([...log.slice(0, 2), ...log.slice(3)]))).toMatchObject({ isCut: true, whole: 'ac' })
  })

  it('keeps many small appends in few pieces, and counts their memory', () => {
    const fold = folded(streamOf('s', Array<string>(100_000).fill('x'), undefined))
    expect(fold.appendCount).toBe(100_000)
    expect(fold.whole).toBe('x'.repeat(100_000))
    expect(fold.keptBytes).toBeGreaterThan(200_000)
    // It is encoded once, until more comes.
    expect(fold.payload).toBe(fold.payload)
    fold.take({ stream: 's', sequence: 100_001, kind: 'append' }, contentOf('!'))
    expect(fold.payload?.length).toBe(100_003)
    fold.forget()
    expect([fold.payload, fold.keptBytes]).toEqual([undefined, 3_328])
    const bytes = new StreamFold()
    folded([{ stream: 's', sequence: 0, kind: 'start', payload: undefined }], bytes)
    for (let index = 1; index <= 1_000; index++)
      bytes.take({ stream: 's', sequence: index, kind: 'append' }, contentOf(Uint8Array.of(index % 256)))
    expect(bytes.whole).toEqual(Buffer.from(Array.from({ length: 1_000 }, (_, index) => (index + 1) % 256)))
  })
})
