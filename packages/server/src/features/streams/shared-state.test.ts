import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseStreamPlace, type StreamKind } from 'webmq-client/protocol'
import { contentOf } from '../../../test/stream-content.js'
import { StreamFold } from './fold.js'
import { formatMark } from './shared-state.js'

interface Logged {
  readonly place: string
  readonly payload: unknown
}

function take(fold: StreamFold, { place, payload }: Logged): boolean {
  const parsed = parseStreamPlace(place)
  return parsed !== undefined && fold.take(parsed, contentOf(payload))
}

function shown({ stream, sequence, status, isCut, appendCount, byteCount, shared, whole }: StreamFold) {
  // A roll-up carries it as JSON.
  return { stream, sequence, status, isCut, appendCount, byteCount, whole, shared: JSON.stringify(shared) }
}

let tokenCount = 0

function messageOf(kind: StreamKind, sequence: number, payload: unknown, producer?: readonly [string, number]): Logged {
  const mark = formatMark({
    token: `t${tokenCount++}`,
    atMs: 1_000 + tokenCount,
    ...(producer === undefined ? {} : { producer: { id: producer[0], epoch: 0, sequence: producer[1] } }),
    ...(sequence % 3 === 0 ? {} : { streamSeq: `s,${sequence}é` }),
  })
  return { place: `s:${sequence}:${kind}:${mark}`, payload }
}

/** Some writers, each of whom writes the next number after what it has seen, at times of its own. */
const logs = fc
  .array(fc.record({ writer: fc.nat(2), isBehind: fc.boolean(), byte: fc.nat(255), last: fc.nat(30) }), {
    maxLength: 40,
  })
  .map((steps) => {
    const log: Logged[] = [messageOf('start', 0, { contentType: 'text/plain' })]
    const taken: number[] = []
    const fold = new StreamFold()
    for (const message of log) take(fold, message)
    for (const { writer, isBehind, byte, last } of steps) {
      const kind = last === 0 ? 'delete' : last === 1 ? 'close' : last === 2 ? 'beat' : 'append'
      const sequence = Math.max(1, fold.sequence + (isBehind || kind === 'beat' ? 0 : 1))
      const bytes = kind === 'append' || (kind === 'close' && byte > 127) ? Uint8Array.of(byte) : undefined
      const message = messageOf(kind, sequence, bytes, writer === 0 ? undefined : [`p${writer}`, sequence])
      log.push(message)
      if (take(fold, message) && bytes !== undefined) taken.push(byte)
    }
    return { log, taken, fold }
  })

describe('a stream with many writers', () => {
  it('has the first message of each number, on every node, wherever it began to fold and with whatever copies', () => {
    fc.assert(
      fc.property(logs, fc.nat(40), fc.nat(40), ({ log, taken, fold }, at, from) => {
        const again = new StreamFold()
        for (const message of [...log.slice(0, at), ...log.slice(Math.min(from, at))]) take(again, message)
        // Times of life and tokens of copies are those of the log.
        expect({ ...shown(again), shared: undefined }).toEqual({ ...shown(fold), shared: undefined })
        expect(again.shared?.producers).toEqual(fold.shared?.producers)
        expect(again.shared?.checksum).toBe(fold.shared?.checksum)
        if (fold.status !== 'delete') expect([...((fold.whole as Uint8Array) ?? [])]).toEqual(taken)
        else expect(fold.whole).toBeUndefined()
      }),
    )
  })

  it('does not come back after it was deleted, and is cut where the log begins within it', () => {
    const log = [messageOf('start', 0, {}), messageOf('append', 1, Uint8Array.of(1)), messageOf('delete', 2, undefined)]
    const fold = new StreamFold()
    for (const message of [...log, messageOf('append', 3, Uint8Array.of(2)), ...log]) take(fold, message)
    expect(fold).toMatchObject({ status: 'delete', isActive: false, whole: undefined })
    const late = new StreamFold()
    take(late, log[1] as Logged)
    expect(late).toMatchObject({ isCut: true, isActive: true })
    expect(late.shared).toBeDefined()
  })

  it('has the state that producers and times to live need', () => {
    const fold = new StreamFold()
    take(fold, messageOf('start', 0, {}))
    take(fold, messageOf('append', 1, Uint8Array.of(1), ['p', 7]))
    take(fold, messageOf('close', 2, undefined, ['q', 0]))
    expect({ ...fold.shared?.producers }).toEqual({ p: [0, 7], q: [0, 0] })
    expect(fold.shared).toMatchObject({ producerCount: 2, streamSeq: 's,2é', closedBy: { id: 'q' } })
    const before = fold.shared?.touchedMs ?? 0
    take(fold, messageOf('beat', 2, undefined))
    expect(fold.shared?.touchedMs).toBeGreaterThan(before)
  })
})
