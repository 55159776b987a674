import { describe, expect, it } from 'vitest'
import type { InboundMessage } from '../ports/broker.js'
import { RefusedMessages } from './refused-messages.js'

function refusing() {
  let nowMs = 0
  const told: string[] = []
  const passed: string[] = []
  const deliver = ({ key }: InboundMessage) => {
    if (key === 'bug') throw new TypeError('a bug')
    return passed.push(key) > 1
  }
  const lines: object[] = []
  const refused = new RefusedMessages({
    maxPayloadBytes: 10,
    delivery: { refused: (keys) => told.push(keys) },
    logger: { warn: (fields: object) => lines.push(fields) } as never,
    now: () => nowMs,
  })
  const check = (key: string, byteCount: number) =>
    refused.deliver({ key, payload: new Uint8Array(byteCount), isBinary: true }, deliver)
  const wait = (ms: number) => {
    nowMs += ms
  }
  return { refused, told, passed, lines, check, wait }
}

describe('RefusedMessages', () => {
  it('lets pass what clients may get', () => {
    const { refused, told, passed, lines, check } = refusing()
    expect([check('a', 0), check('a', 10), check('$servers', 10)]).toEqual([false, true, true])
    expect(passed).toEqual(['a', 'a', '$servers'])
    expect(refused.counts).toEqual({ malformed: 0, 'too-large': 0, failed: 0 })
    expect([...told, ...lines]).toEqual([])
  })

  it('counts what is too large and what has no valid key, and tells the listeners of a valid key', () => {
    const { refused, told, passed, check } = refusing()
    for (const [key, byteCount] of [
      ['a', 11],
      ['a\nmessage b -', 1],
      ['a.*', 11],
      ['$servers', 11],
    ] as const)
      expect(check(key, byteCount)).toBe(true)
    expect(passed).toEqual([])
    expect(refused.counts).toEqual({ malformed: 2, 'too-large': 2, failed: 0 })
    expect(told).toEqual(['a'])
  })

  it('does not throw when delivering does: a bug costs one message', () => {
    const { refused, told, lines, check } = refusing()
    expect(check('bug', 1)).toBe(true)
    expect(refused.counts).toMatchObject({ failed: 1 })
    expect(told).toEqual(['bug'])
    expect(lines).toMatchObject([{ reason: 'failed', detail: expect.stringContaining('TypeError: a bug') }])
  })

  it('logs one line per second, and how many others there were', () => {
    const { lines, check, wait } = refusing()
    for (let count = 0; count < 100; count++) check('a', 11)
    wait(1_000)
    check('a', 12)
    expect(lines).toEqual([
      { reason: 'too-large', key: 'a', detail: '11 bytes, at most 10', others: 0 },
      { reason: 'too-large', key: 'a', detail: '12 bytes, at most 10', others: 99 },
    ])
  })
})
