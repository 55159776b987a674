import { expect, it } from 'vitest'
import { Batch } from './batch.js'

const [a, b, c] = ['a', 'bb', 'ccc'].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer]

it('joins its frames in order', () => {
  const batch = new Batch(a).with(b).with(c)
  expect(batch.bytes.toString()).toBe('abbccc')
  expect(batch.byteLength).toBe(6)
})

it('does not copy a single frame', () => {
  expect(new Batch(a).bytes).toBe(a)
})

it('is shared by connections that get the same frames', () => {
  const first = new Batch(a)
  expect(first.with(b)).toBe(first.with(b))
  expect(first.with(b).with(c).bytes).toBe(first.with(b).with(c).bytes)
})

it('is not shared by connections that get others', () => {
  const first = new Batch(a)
  const [one, other] = [first.with(b), first.with(c)]
  expect([one, other].map(({ bytes }) => bytes.toString())).toEqual(['abb', 'accc'])
})
