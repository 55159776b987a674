import { describe, expect, it } from 'vitest'
import { count } from './count.js'
import type { HeardEvent, Published } from './record.js'
import { drawSchedule, LISTENER_COUNT, NODE_COUNT, THEMES } from './schedule.js'

const message = (number: number, channel = 'a'): HeardEvent => ({ what: 'message', channel, number })
const told = (isRecovered: boolean, channel?: string): HeardEvent => ({
  what: 'told',
  isRecovered,
  ...(channel !== undefined && { channel }),
})
const acked = (channel: string, ...numbers: number[]): Published[] =>
  numbers.map((number) => ({ channel, number, outcome: 'acked' }))

function wrongsOf(published: readonly Published[], events: readonly HeardEvent[]) {
  const { toldLost, silentlyLost, doubled, inverted, falselyRecovered } = count({
    published,
    listeners: [{ name: 'listener-0', events }],
  })
  return { toldLost, silentlyLost, doubled, inverted, falselyRecovered }
}

const NONE = { toldLost: 0, silentlyLost: 0, doubled: 0, inverted: 0, falselyRecovered: 0 }

describe('the judge of all systems', () => {
  it('finds nothing where each message came once and in order', () => {
    const events = [message(1), message(1, 'b'), told(true), message(2), message(2, 'b')]
    expect(wrongsOf([...acked('a', 1, 2), ...acked('b', 1, 2)], events)).toEqual(NONE)
  })

  it('counts what is missing as silently lost, unless a gap was told around it', () => {
    const published = acked('a', 1, 2, 3)
    expect(wrongsOf(published, [message(1), message(3)])).toEqual({ ...NONE, silentlyLost: 1 })
    expect(wrongsOf(published, [message(1), told(false), message(3)])).toEqual({ ...NONE, toldLost: 1 })
    expect(wrongsOf(published, [message(1)])).toEqual({ ...NONE, silentlyLost: 2 })
    expect(wrongsOf(published, [message(1), told(false)])).toEqual({ ...NONE, toldLost: 2 })
  })

  it('takes a gap for no excuse that was told of another channel, or elsewhere', () => {
    const published = acked('a', 1, 2, 3, 4)
    const other = [message(1), told(false, 'b'), message(3), message(4)]
    expect(wrongsOf(published, other)).toEqual({ ...NONE, silentlyLost: 1 })
    const later = [message(1), message(3), told(false), message(4)]
    expect(wrongsOf(published, later)).toEqual({ ...NONE, silentlyLost: 1 })
  })

  it('counts a recovery once that was called complete and was not', () => {
    const published = acked('a', 1, 2, 3, 4)
    const events = [message(1), told(true), message(4)]
    expect(wrongsOf(published, events)).toEqual({ ...NONE, silentlyLost: 2, falselyRecovered: 1 })
  })

  it('tells what came again from what came too late', () => {
    const published = acked('a', 1, 2, 3)
    expect(wrongsOf(published, [message(1), message(2), message(2), message(3)])).toEqual({ ...NONE, doubled: 1 })
    expect(wrongsOf(published, [message(1), message(3), message(2)])).toEqual({ ...NONE, inverted: 1 })
    expect(wrongsOf(published, [message(1), message(2), message(3), message(1)])).toEqual({ ...NONE, doubled: 1 })
  })

  it('allows what was not answered to come or not, and once', () => {
    const published: Published[] = [...acked('a', 1), { channel: 'a', number: 2, outcome: 'unknown' }, ...acked('a', 3)]
    expect(wrongsOf(published, [message(1), message(3)])).toEqual(NONE)
    expect(wrongsOf(published, [message(1), message(2), message(3)])).toEqual(NONE)
    expect(wrongsOf(published, [message(1), message(2), message(2), message(3)])).toEqual({ ...NONE, doubled: 1 })
  })

  it('adds up what was to come, and what the system has said', () => {
    const listeners = [
      { name: 'listener-0', events: [message(1), told(true), message(2)] },
      { name: 'listener-1', events: [message(1), told(false), told(true), message(2)] },
    ]
    expect(count({ published: acked('a', 1, 2), listeners })).toMatchObject({
      acked: 2,
      expected: 4,
      recovered: 2,
      toldGaps: 1,
    })
  })
})

describe.each(THEMES)('schedules of %s', (theme) => {
  it('are the same for the same seed, over in time, and never touch one thing twice at once', () => {
    for (let seed = 0; seed < 100; seed++) {
      const { steps, lengthMs } = drawSchedule(theme, seed, 5_000)
      expect(drawSchedule(theme, seed, 5_000).steps).toEqual(steps)
      expect(steps.length).toBeGreaterThan(0)
      const freeAt = new Map<string, number>()
      for (const step of steps) {
        const isOfNode = 'node' in step
        const thing = isOfNode ? `node ${step.node}` : `listener ${step.listener}`
        expect(isOfNode ? step.node : step.listener).toBeLessThan(isOfNode ? NODE_COUNT : LISTENER_COUNT)
        expect(step.atMs).toBeGreaterThanOrEqual(freeAt.get(thing) ?? 0)
        expect(step.atMs + step.forMs).toBeLessThanOrEqual(lengthMs)
        freeAt.set(thing, step.atMs + step.forMs)
      }
    }
  })
})
