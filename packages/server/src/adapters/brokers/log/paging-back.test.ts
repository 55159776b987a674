import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Position, ReadResult } from '../../../kernel/ports/broker.js'
import { HistoryRules } from '../../../kernel/ports/history-rules.js'
import { HistoryLog } from './history-log.js'

const MAX_MESSAGES = 30

function logOf(maxMessages: number, maxAgeMs?: number, now = () => 0): HistoryLog {
  const history = new HistoryRules([{ pattern: '#', maxMessages, maxAgeMs }])
  const log = new HistoryLog({ history, historyMaxMessages: MAX_MESSAGES, historyMaxBytes: 4_096 }, now)
  log.restart('e')
  return log
}

function append(log: HistoryLog, key: string): number {
  return log.append({ key, payload: new Uint8Array(1), isBinary: false }).offset
}

/** Short reads are done at once. */
function read(log: HistoryLog, last: number, before?: Position, key = 'a'): ReadResult {
  return log.read({ last, ...(before === undefined ? undefined : { before }) }, [key]) as ReadResult
}

const offsets = ({ messages }: ReadResult) => messages.map(({ position }) => position?.offset)

describe('paging back', () => {
  it('finds each message once and in order, while new ones come and old ones expire, and says where they end', () => {
    const step = fc.record({ key: fc.constantFrom('a', 'b'), count: fc.nat(6) })
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 20 }),
        fc.array(step, { maxLength: 20 }),
        fc.integer({ min: 1, max: 7 }),
        fc.integer({ min: 1, max: 40 }),
        (first, meanwhile, limit, maxMessages) => {
          const log = logOf(maxMessages)
          const all: number[] = []
          const add = ({ key, count }: { key: string; count: number }) => {
            for (let left = count; left > 0; left--) {
              const offset = append(log, key)
              if (key === 'a') all.push(offset)
            }
          }
          for (const each of first) add(each)
          let page = read(log, limit)
          const found = offsets(page)
          const wanted = all.slice(0)
          for (const each of meanwhile) {
            if (page.messages.length < limit) break
            add(each)
            page = read(log, limit, page.messages[0]?.position)
            found.unshift(...offsets(page))
          }
          // Nothing in between is missing, and nothing comes twice.
          const oldest = found[0]
          expect(found).toEqual(oldest === undefined ? [] : wanted.filter((offset) => offset >= oldest))
          if (page.messages.length >= limit) return
          const hasOlder = oldest === undefined ? wanted.length > 0 : (wanted[0] ?? 0) < oldest
          // The log may have dropped what was found before: then it cannot tell.
          if (hasOlder || log.stats().messageCount < MAX_MESSAGES) expect(page.isCut === true).toBe(hasOlder)
        },
      ),
      { numRuns: 200 },
    )
  })

  it('says nothing of what other keys have lost', () => {
    const log = logOf(1_000)
    for (let count = 0; count < MAX_MESSAGES; count++) append(log, 'b')
    const [one] = [append(log, 'a'), append(log, 'a')]
    expect(read(log, 5)).not.toHaveProperty('isCut')
    expect(read(log, 5, log.positionAt(one))).toMatchObject({ messages: [] })
    expect(read(log, 5, log.positionAt(one))).not.toHaveProperty('isCut')
    expect(read(log, MAX_MESSAGES + 5, undefined, 'b').isCut).toBe(true)
    expect(read(log, MAX_MESSAGES - 2, undefined, 'b')).not.toHaveProperty('isCut')
  })

  it('says so where messages are older than the rule allows', () => {
    let nowMs = 0
    const log = logOf(1_000, 10, () => nowMs)
    append(log, 'a')
    nowMs = 8
    append(log, 'a')
    nowMs = 12
    expect(offsets(read(log, 2))).toEqual([2])
    expect(read(log, 2).isCut).toBe(true)
    expect(read(log, 1)).not.toHaveProperty('isCut')
  })

  it('does not know what was before it began', () => {
    const log = logOf(1_000)
    log.restart('e', 5)
    append(log, 'a')
    expect(read(log, 2).isCut).toBe(true)
    log.began(5)
    expect(read(log, 2)).not.toHaveProperty('isCut')
  })

  it('knows nothing before a position of another epoch, and none after its end', () => {
    const log = logOf(1_000)
    append(log, 'a')
    expect(read(log, 2, { epoch: 'other', offset: 1, fingerprint: 1 })).toMatchObject({
      messages: [],
      gap: 'epoch-changed',
    })
    expect(offsets(read(log, 2, log.positionAt(1)))).toEqual([])
    expect(() => read(log, 2, log.positionAt(2))).toThrow('after the end of the log')
  })
})
