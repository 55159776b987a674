import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { StreamKind } from 'webmq-client/protocol'
import { StreamFold } from './fold.js'

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
  for (const { payload, ...place } of messages) fold.take(place, payload)
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

describe('StreamFold', () => {
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
    fold.take({ stream: 's', sequence: 100_001, kind: 'append' }, '!')
    expect(fold.payload?.length).toBe(100_003)
    fold.forget()
    expect([fold.payload, fold.keptBytes]).toEqual([undefined, 1_024])
    const bytes = new StreamFold()
    folded([{ stream: 's', sequence: 0, kind: 'start', payload: undefined }], bytes)
    for (let index = 1; index <= 1_000; index++)
      bytes.take({ stream: 's', sequence: index, kind: 'append' }, Uint8Array.of(index % 256))
    expect(bytes.whole).toEqual(Buffer.from(Array.from({ length: 1_000 }, (_, index) => (index + 1) % 256)))
  })
})
