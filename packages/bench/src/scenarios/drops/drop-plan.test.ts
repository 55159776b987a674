import { expect, it } from 'vitest'
import { dropsOf } from './drop-plan.js'

const PLAN = { seed: 7, spanMs: 40_000, dropMs: 2_000, count: 2 }
const CLIENTS = Array.from({ length: 1_000 }, (_, client) => client)

it('drops every client once in each part of the span, and never twice at once', () => {
  for (const client of CLIENTS) {
    const drops = dropsOf(client, PLAN)
    expect(drops).toHaveLength(2)
    for (const [part, { atMs }] of drops.entries()) {
      expect(atMs).toBeGreaterThanOrEqual(part * 20_000)
      expect(atMs + PLAN.dropMs).toBeLessThanOrEqual((part + 1) * 20_000)
    }
  }
})

it('is the same for every target, and another with another seed', () => {
  const all = (seed: number) => CLIENTS.map((client) => dropsOf(client, { ...PLAN, seed }))
  expect(all(7)).toEqual(all(7))
  expect(all(8)).not.toEqual(all(7))
})

it('ends half of the connections at once, at times all over the span', () => {
  const drops = CLIENTS.flatMap((client) => dropsOf(client, PLAN))
  const noticed = drops.filter(({ kind }) => kind === 'noticed').length
  expect(noticed).toBeGreaterThan(900)
  expect(noticed).toBeLessThan(1_100)
  const first = drops.filter(({ atMs }) => atMs < 10_000).length
  expect(first).toBeGreaterThan(450)
  expect(first).toBeLessThan(650)
})
