import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { ReplayPacer } from './flow.js'

/** Replays that write down their turns, and take these units. */
function replays(pacer: ReplayPacer, units: readonly number[]) {
  const began: number[] = []
  for (const [index, unit] of units.entries()) {
    const send = () => {
      began.push(index)
      pacer.spend(unit)
    }
    if (pacer.take()) send()
    else pacer.wait(send)
  }
  return began
}

async function countsPerTurn(began: readonly number[], turns: number): Promise<number[]> {
  const counts = [began.length]
  for (let turn = 0; turn < turns; turn++) {
    const before = began.length
    await nextTurn()
    counts.push(began.length - before)
  }
  return counts
}

describe('ReplayPacer', () => {
  it('keeps nobody waiting while a turn has seen little', () => {
    expect(replays(new ReplayPacer(), [10, 10, 10])).toEqual([0, 1, 2])
  })

  it('gives long replays a turn each, in their order', async () => {
    const began = replays(new ReplayPacer(), [990, 990, 990, 990])
    expect(await countsPerTurn(began, 3)).toEqual([1, 1, 1, 1])
    expect(began).toEqual([0, 1, 2, 3])
  })

  it('makes up in the next turns for a page that took more than a turn', async () => {
    const began = replays(new ReplayPacer(), [2_990, 10])
    expect(await countsPerTurn(began, 3)).toEqual([1, 0, 0, 1])
  })

  // Symptom: pings waited 20 ms. Cause: a thousand reads that found nothing ended in one turn of the event loop, because
  // only messages were counted.
  it('lets many short replays share a turn, even those without a message, but not all', async () => {
    const units = Array.from({ length: 250 }, () => 0)
    const began = replays(new ReplayPacer(), units)
    expect(await countsPerTurn(began, 2)).toEqual([100, 100, 50])
    expect(began).toEqual(units.map((_, index) => index))
  })

  it('forgets a turn when it is over', async () => {
    const pacer = new ReplayPacer()
    replays(pacer, [990])
    expect(pacer.take()).toBe(false)
    await nextTurn()
    expect(pacer.take()).toBe(true)
  })
})
