import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { ReplayPacer } from './pacer.js'

/** A replay that writes down its turn, and is so long. */
function replays(pacer: ReplayPacer, lengths: readonly number[]) {
  const began: number[] = []
  for (const [index, length] of lengths.entries()) {
    const send = () => {
      began.push(index)
      for (let sent = 0; sent < length; sent++) pacer.sent()
    }
    const turn = pacer.turn()
    if (turn instanceof Promise) void turn.then(send)
    else send()
  }
  return began
}

describe('ReplayPacer', () => {
  it('keeps nobody waiting while a turn has seen little', () => {
    expect(replays(new ReplayPacer(), [10, 10, 10])).toEqual([0, 1, 2])
  })

  it('gives long replays a turn each, in their order', async () => {
    const began = replays(new ReplayPacer(), [500, 500, 500, 500])
    const seen = [began.length]
    for (let turn = 0; turn < 3; turn++) {
      await nextTurn()
      seen.push(began.length)
    }
    expect(seen).toEqual([1, 2, 3, 4])
    expect(began).toEqual([0, 1, 2, 3])
  })

  it('lets many short replays share a turn', async () => {
    const began = replays(
      new ReplayPacer(),
      Array.from({ length: 300 }, () => 5),
    )
    expect(began.length).toBe(100)
    await nextTurn()
    expect(began.length).toBe(164)
    for (let turn = 0; turn < 4; turn++) await nextTurn()
    expect(began).toEqual(Array.from({ length: 300 }, (_, index) => index))
  })

  it('forgets a turn when it is over', async () => {
    const pacer = new ReplayPacer()
    replays(pacer, [500])
    await nextTurn()
    expect(pacer.turn()).toBeUndefined()
  })
})
