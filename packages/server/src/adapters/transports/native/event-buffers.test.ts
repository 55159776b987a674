import { expect, it } from 'vitest'
import { EventBuffers } from './event-buffers.js'

const BUFFER_BYTES = 128 * 1024

/** An engine with `left` events, each of which fills a buffer with its number. */
function start(left: number, sizeBytes = BUFFER_BYTES) {
  let number = 0
  const buffers = new EventBuffers((packed) => {
    if (number === left) return 0
    if (packed.length < sizeBytes) return -sizeBytes
    packed.fill(++number)
    return sizeBytes
  })
  const take = () => {
    const portion = buffers.next()
    if (portion !== undefined) portion.start = portion.end
    return portion
  }
  return { buffers, take }
}

it('gives a portion again until it is read, and nothing when there are no events', () => {
  const { buffers } = start(1)
  const portion = buffers.next()
  expect([portion?.start, portion?.end]).toEqual([0, BUFFER_BYTES])
  expect(buffers.next()).toBe(portion)
  if (portion !== undefined) portion.start = portion.end
  expect(buffers.next()).toBeUndefined()
})

it('fills one buffer again and again while nobody holds it', () => {
  const { take } = start(100)
  const first = take()?.packed
  for (let count = 1; count < 100; count++) expect(take()?.packed).toBe(first)
})

it('never writes into a buffer that is held, and fills it again once it is released as often', () => {
  const { take } = start(1_000)
  const held = take()
  expect([held?.memory?.hold(), held?.memory?.hold()]).toEqual([true, true])
  for (let count = 0; count < 20; count++) expect(take()?.packed).not.toBe(held?.packed)
  held?.memory?.release()
  for (let count = 0; count < 20; count++) take()
  expect(held?.packed[0]).toBe(1)
  held?.memory?.release()
  const later = take()
  later?.memory?.hold()
  expect(take()?.packed).toBe(held?.packed)
  expect(held?.packed[0]).not.toBe(1)
})

it('holds 8 MiB at most, and more again when some were released', () => {
  const { take } = start(200)
  const held: ReturnType<typeof take>[] = []
  for (let portion = take(); portion?.memory?.hold() === true; portion = take()) held.push(portion)
  expect(held).toHaveLength(64)
  expect(held.map((portion) => portion?.packed[0])).toEqual(held.map((_, index) => index + 1))
  held[0]?.memory?.release()
  expect([take()?.memory?.hold(), take()?.memory?.hold()]).toEqual([true, false])
})

it('makes a buffer of its own for an event that is larger', () => {
  const { take } = start(3, 3 * BUFFER_BYTES)
  const large = take()
  expect(large?.packed).toHaveLength(3 * BUFFER_BYTES)
  large?.memory?.hold()
  expect(take()?.packed).not.toBe(large?.packed)
  expect(large?.packed.every((byte) => byte === 1)).toBe(true)
  large?.memory?.release()
})
