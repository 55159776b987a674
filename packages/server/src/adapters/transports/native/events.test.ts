import { expect, it } from 'vitest'
import { type EventPortion, type NativeEventHandlers, readEvents } from './events.js'

const MESSAGES = 2
const CLOSED = 3
const HEADER_BYTES = 16

function portionOf(kind: number, count: number): EventPortion {
  const packed = Buffer.alloc(count * HEADER_BYTES)
  for (let index = 0; index < count; index++) {
    packed[index * HEADER_BYTES] = kind
    packed[index * HEADER_BYTES + 2] = kind === MESSAGES ? 1 : 0
    packed.writeUInt32LE(HEADER_BYTES, index * HEADER_BYTES + 4)
    packed.writeDoubleLE(index, index * HEADER_BYTES + 8)
  }
  return { packed, start: 0, end: packed.length, receivedMs: 1 }
}

function handlersOf(handled: number[]): NativeEventHandlers {
  const note = (id: number) => void handled.push(id)
  const never = () => expect.unreachable()
  return {
    upgrade: never,
    messageRun: note,
    drained: note,
    closed: note,
    http: never,
    failed: never,
    quiet: never,
    ended: never,
  }
}

it('leaves events for the next turn when the work is done', () => {
  const handled: number[] = []
  const portion = portionOf(CLOSED, 100)
  const work = readEvents(portion, handlersOf(handled), 40_000)
  expect(work).toBeGreaterThanOrEqual(40_000)
  expect(handled).toEqual(Array.from({ length: 10 }, (_, index) => index))
  readEvents(portion, handlersOf(handled), Number.POSITIVE_INFINITY)
  expect(handled).toEqual(Array.from({ length: 100 }, (_, index) => index))
  expect(portion.start).toBe(portion.end)
})

it('counts a message as little more than its bytes', () => {
  const handled: number[] = []
  readEvents(portionOf(MESSAGES, 1_000), handlersOf(handled), 40_000)
  expect(handled).toHaveLength(278)
})

it('counts 64 KiB of a larger message', () => {
  const larger = (length: number) => {
    const event = Buffer.alloc(16 + length)
    event[0] = MESSAGES
    event.writeUInt32LE(event.length, 4)
    return readEvents({ packed: event, start: 0, end: event.length, receivedMs: 0 }, handlersOf([]), 1)
  }
  expect(larger(250_000)).toBe(larger(16_384))
  expect(larger(16_000)).toBeLessThan(larger(16_384))
})
