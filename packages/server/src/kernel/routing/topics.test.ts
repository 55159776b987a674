import { describe, expect, it } from 'vitest'
import { Topics } from './delivery.js'

describe('Topics', () => {
  it('gives each key a number of its own, and the same one again', () => {
    const topics = new Topics()
    const numbers = Array.from({ length: 1_000 }, (_, index) => topics.of(`k.${index}`))
    expect(new Set(numbers).size).toBe(1_000)
    expect(Array.from({ length: 1_000 }, (_, index) => topics.of(`k.${index}`))).toEqual(numbers)
  })

  it('never gives the number of one key to another, however many keys there are', () => {
    const topics = new Topics()
    const first = topics.of('first')
    const others = Array.from({ length: 200_000 }, (_, index) => topics.of(`k.${index}`))
    expect(new Set(others).size).toBe(others.length)
    expect(others).not.toContain(first)
    expect(others).not.toContain(topics.of('first'))
  })
})
