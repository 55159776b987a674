import fc from 'fast-check'
import { expect, it } from 'vitest'
import { MessageBuffer } from './message-buffer.js'

it('gives waiting readers their items in order, then ends them', async () => {
  const buffer = new MessageBuffer<number>(1, 'close')
  const reads = [buffer.next(), buffer.next(), buffer.next()]
  expect([buffer.push(1), buffer.push(2)]).toEqual(['kept', 'kept'])
  buffer.end()
  expect((await Promise.all(reads)).map(({ value }) => value)).toEqual([1, 2, undefined])
  expect(await buffer.next()).toEqual({ done: true, value: undefined })
})

it('rejects waiting readers with the error it ends with', async () => {
  const buffer = new MessageBuffer<number>(1, 'close')
  const read = buffer.next()
  buffer.end(new Error('over'))
  buffer.end()
  await expect(read).rejects.toThrow('over')
  await expect(buffer.next()).rejects.toThrow('over')
})

it.each(['close', 'drop-oldest', 'drop-newest'] as const)('never keeps more than its limit: %s', async (overflow) => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat()), fc.integer({ min: 1, max: 5 }), async (items, max) => {
      const buffer = new MessageBuffer<number>(max, overflow)
      const lost = items.filter((item) => buffer.push(item) !== 'kept').length
      buffer.end()
      const kept: number[] = []
      for (let read = await buffer.next(); !read.done; read = await buffer.next()) kept.push(read.value)
      expect(kept).toEqual(overflow === 'drop-oldest' ? items.slice(-max) : items.slice(0, max))
      expect(lost).toBe(Math.max(0, items.length - max))
    }),
  )
})
