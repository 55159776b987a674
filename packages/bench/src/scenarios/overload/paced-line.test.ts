import { describe, expect, it } from 'vitest'
import { PacedLine } from './paced-line.js'

/** What comes out, with its time, when it is looked for every millisecond. */
function drained(line: PacedLine<string>, fromMs: number, toMs: number): [string, number][] {
  const seen: [string, number][] = []
  for (let atMs = fromMs; atMs <= toMs; atMs++)
    seen.push(...line.take(atMs).map((item): [string, number] => [item, atMs]))
  return seen
}

describe('the network to the broker', () => {
  it('carries 1,000 bytes per second, and a burst of a tenth of a second after a rest', () => {
    const line = new PacedLine<string>(1_000)
    for (const item of ['a', 'b', 'c', 'd']) line.push(item, 100, 0)
    expect(drained(line, 0, 1_000)).toEqual([
      ['a', 0],
      ['b', 100],
      ['c', 200],
      ['d', 300],
    ])
  })

  it('loses no capacity when it is looked at late', () => {
    const line = new PacedLine<string>(1_000)
    for (let number = 0; number < 10; number++) line.push(String(number), 100, 0)
    expect(line.take(50)).toHaveLength(1)
    expect(line.take(700)).toHaveLength(7)
  })

  it('keeps the order when a delay ends, and delays nothing from then on', () => {
    const line = new PacedLine<string>(Number.POSITIVE_INFINITY)
    line.delay(200)
    line.push('a', 1, 0)
    line.push('b', 1, 10)
    line.delay(0)
    line.push('c', 1, 20)
    line.push('d', 1, 300)
    expect(drained(line, 0, 400)).toEqual([
      ['a', 200],
      ['b', 210],
      ['c', 210],
      ['d', 300],
    ])
  })

  it('delays what waits for its turn by no less than the rest', () => {
    const line = new PacedLine<string>(1_000)
    line.delay(200)
    line.push('a', 100, 0)
    line.push('b', 100, 0)
    expect(drained(line, 0, 400)).toEqual([
      ['a', 200],
      ['b', 300],
    ])
  })

  it('goes on where it stood still, without a burst', () => {
    const line = new PacedLine<string>(1_000)
    for (const item of ['a', 'b', 'c']) line.push(item, 100, 0)
    expect(line.take(0)).toEqual(['a'])
    line.freeze(50)
    line.push('d', 100, 2_000)
    expect(line.take(3_000)).toEqual([])
    line.thaw(3_050)
    expect(drained(line, 3_050, 4_000)).toEqual([
      ['b', 3_100],
      ['c', 3_200],
      ['d', 3_300],
    ])
  })
})
