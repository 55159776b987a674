import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { BrokerRoom } from '../ports/broker.js'
import type { Author } from './author.js'
import { WaitingRoom } from './waiting-room.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** A room of a broker that takes `free` more messages, and a waiting room before it. */
function started({ free = 0, maxBytes = 1_000 } = {}) {
  const room = {
    free,
    isFull: true,
    pendingCount: 0,
    acceptedCount: 0,
    windowCount: 64,
    onRoom: undefined as BrokerRoom['onRoom'],
    /** The broker accepts messages, and takes as many more. */
    accept(count: number) {
      room.acceptedCount += count
      room.free += count
      room.isFull = room.free <= 0
      room.onRoom?.()
    },
  }
  // The middle of the jitter.
  const warn = vi.fn()
  const waitingRoom = new WaitingRoom({ room, maxBytes, warn, random: () => 0.5 })
  const passed: string[] = []
  const refused: [string, number][] = []
  const enter = (
    name: string,
    parts: {
      byteCount?: number
      messageCount?: number
      isClosed?: boolean
      ageMs?: number
      refusedCount?: number
    } = {},
  ) => {
    const { byteCount = 1, messageCount = 1, isClosed = false, ageMs = 0, refusedCount = 0 } = parts
    return waitingRoom.enter({
      author: { isClosed } as Author,
      arrivedMs: performance.now() - ageMs,
      messageCount,
      byteCount,
      refusedCount,
      go: () => {
        passed.push(name)
        room.isFull = --room.free <= 0
      },
      refuse: (retryAfterMs) => refused.push([name, retryAfterMs]),
    })
  }
  return { room, waitingRoom, warn, passed, refused, enter }
}

describe('WaitingRoom', () => {
  it('is not needed without a broker that may be full, and while it is not full', () => {
    expect(new WaitingRoom({ room: undefined, maxBytes: 1, warn: () => undefined }).isNeeded).toBe(false)
    const { room, waitingRoom } = started()
    expect(waitingRoom.isNeeded).toBe(true)
    room.isFull = false
    expect(waitingRoom.isNeeded).toBe(false)
  })

  // Symptom: after one connection had no room for more messages, the limit of bytes held for nobody. Cause: what it could not
  // keep counted as infinite bytes, and infinity less infinity is no number.
  it('keeps its limit after messages for which there was no room', () => {
    const { waitingRoom, refused, enter } = started({ maxBytes: 100 })
    enter('full', { byteCount: 10 })(Number.POSITIVE_INFINITY)
    enter('first', { byteCount: 60 })
    enter('second', { byteCount: 60 })
    expect(refused.map(([name]) => name)).toEqual(['full', 'second'])
    expect(waitingRoom.messageCount).toBe(1)
  })

  it('lets as many pass as there is room for, in the order of their coming', () => {
    const { room, waitingRoom, passed, enter } = started()
    for (const name of ['a', 'b', 'c']) enter(name)
    room.accept(2)
    expect(passed).toEqual(['a', 'b'])
    room.free = 1
    room.isFull = false
    // A later publisher does not overtake them.
    expect(waitingRoom.isNeeded).toBe(true)
    room.accept(0)
    expect(passed).toEqual(['a', 'b', 'c'])
    expect(waitingRoom.messageCount).toBe(0)
  })

  it('lets all pass when the broker goes away: then the broker keeps them', () => {
    const { room, passed, enter } = started()
    for (const name of ['a', 'b']) enter(name)
    room.free = 100
    room.isFull = false
    room.onRoom?.()
    expect(passed).toEqual(['a', 'b'])
  })

  it('refuses who waits for longer than a second, counted from the arrival of its message', () => {
    const { refused, enter } = started()
    enter('old', { ageMs: 700 })
    enter('new')
    vi.advanceTimersByTime(200)
    expect(refused).toEqual([])
    vi.advanceTimersByTime(100)
    expect(refused).toEqual([['old', 1_000]])
    vi.advanceTimersByTime(700)
    expect(refused).toEqual([
      ['old', 1_000],
      ['new', 1_000],
    ])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('keeps one that was refused twice for three seconds, whatever waits behind it', () => {
    const { refused, enter } = started()
    enter('twice', { refusedCount: 2 })
    enter('once', { refusedCount: 1 })
    vi.advanceTimersByTime(2_900)
    expect(refused.map(([name]) => name)).toEqual(['once'])
    vi.advanceTimersByTime(100)
    expect(refused.map(([name]) => name)).toEqual(['once', 'twice'])
  })

  it('gives out times one behind the other, by the pace of the broker and all that waits', () => {
    const { room, refused, enter } = started()
    const behind = enter('a')
    for (let count = 0; count < 9; count++) behind(1)
    enter('b')
    enter('c')
    room.pendingCount = 88
    // 100 messages per second, all of other nodes' publishers.
    for (let look = 0; look < 10; look++) {
      room.acceptedCount += 10
      vi.advanceTimersByTime(100)
    }
    // 88 messages are ahead of the first, which brings ten. It comes 300 ms early.
    expect(refused).toEqual([
      ['a', 580],
      ['b', 680],
      ['c', 690],
    ])
  })

  it('sends nobody away for longer than two seconds, however slow the broker is', () => {
    const { room, refused, enter } = started()
    for (const name of ['a', 'b', 'c']) enter(name)
    room.pendingCount = 1_000
    vi.advanceTimersByTime(500)
    room.acceptedCount++
    vi.advanceTimersByTime(500)
    // Its pace decays to 8.9 messages per second. Nobody waits for the first one's turn for longer than a second.
    expect(refused.map(([, retryAfterMs]) => retryAfterMs)).toEqual([700, 813, 926])
    const [behind] = ['d', 'e'].map((name) => enter(name))
    for (let count = 0; count < 100; count++) behind?.(1)
    vi.advanceTimersByTime(1_100)
    expect(refused.at(-1)).toEqual(['e', 2_000])
  })

  it('calls those who were refused together back before the broker has nothing to do', () => {
    // Symptom: at three times its capacity a broker had nothing to do for a second. Cause: each refused publisher
    // was told to wait for all others that were refused in the same moment.
    const author = { isClosed: false } as Author
    const broker = {
      pendingCount: 0,
      acceptedCount: 0,
      windowCount: 60,
      onRoom: undefined as BrokerRoom['onRoom'],
      get isFull() {
        return broker.pendingCount >= 60
      },
    }
    const waitingRoom = new WaitingRoom({ room: broker, maxBytes: 1_000, warn: () => undefined, random: () => 0.5 })
    const go = () => {
      broker.pendingCount += 10
    }
    let refusals = 0
    const come = () => {
      const refuse = (retryAfterMs: number) => {
        refusals++
        setTimeout(come, retryAfterMs)
      }
      if (!waitingRoom.isNeeded) go()
      else {
        const counts = { messageCount: 10, byteCount: 10, refusedCount: 0 }
        waitingRoom.enter({ author, arrivedMs: performance.now(), ...counts, go, refuse })
      }
    }
    // Four seconds of work.
    for (let publisher = 0; publisher < 40; publisher++) come()
    let idleCount = 0
    for (let tick = 0; tick < 390; tick++) {
      vi.advanceTimersByTime(10)
      if (broker.pendingCount === 0) idleCount++
      else broker.pendingCount--
      broker.acceptedCount++
      broker.onRoom?.()
    }
    expect(refusals).toBeGreaterThan(20)
    expect(idleCount).toBe(0)
  })

  it('refuses nobody for what passed while the process stood still', () => {
    const { room, passed, refused, enter } = started()
    enter('a')
    vi.advanceTimersByTime(100)
    const before = performance.now()
    const now = vi.spyOn(performance, 'now').mockImplementation(() => before + 5_000)
    vi.advanceTimersToNextTimer()
    expect(refused).toEqual([])
    room.accept(1)
    expect(passed).toEqual(['a'])
    now.mockRestore()
  })

  it('refuses the one that is too much, and what comes behind one', () => {
    const { waitingRoom, refused, enter } = started({ maxBytes: 100 })
    const behind = enter('a', { byteCount: 60 })
    enter('b', { byteCount: 41 })
    expect(refused).toEqual([['b', 1_000]])
    enter('c', { byteCount: 30 })
    expect(behind(10)).toBe(false)
    expect(waitingRoom.messageCount).toBe(3)
    expect(behind(1)).toBe(true)
    expect(refused.map(([name]) => name)).toEqual(['b', 'a'])
    expect(behind(1)).toBe(true)
    expect(waitingRoom.messageCount).toBe(1)
    vi.advanceTimersByTime(1_000)
    expect(waitingRoom.messageCount).toBe(0)
  })

  it('says once per minute that messages wait', () => {
    const { warn, enter } = started()
    for (let count = 0; count < 3; count++) enter('a')
    expect(warn.mock.calls).toEqual([
      [{ waitedCount: 1, pendingCount: 0, windowCount: 64 }, expect.stringContaining('slowly')],
    ])
    vi.advanceTimersByTime(60_000)
    enter('b')
    expect(warn.mock.calls[1]?.[0]).toMatchObject({ waitedCount: 3 })
  })

  it('drops those whose connection has ended', () => {
    const { room, passed, refused, enter } = started()
    enter('a', { isClosed: true })
    enter('b', { isClosed: true })
    room.accept(1)
    expect(passed).toEqual([])
    expect(refused).toEqual([
      ['a', 0],
      ['b', 0],
    ])
    vi.advanceTimersByTime(100)
    expect(vi.getTimerCount()).toBe(0)
  })
})
