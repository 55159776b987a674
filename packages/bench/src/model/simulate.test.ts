import { describe, expect, it } from 'vitest'
import { paceOf } from './flush-pacing.js'
import { type Simulation, simulate } from './simulate.js'

/** One message to 10,000 connections of one node, with a reader that costs nothing. */
const ONE: Simulation = {
  cores: 2,
  nodes: 1,
  connections: 10_000,
  messages: 1,
  messagesPerSecond: 1,
  hopS: 0,
  writeS: 4e-6,
  frameS: 0,
  readS: 0,
  readFrameS: 0,
}

describe('a simulated fan-out', () => {
  it('takes as long as its writes', () => {
    const { p50Ms, p99Ms, maxMs, deliveries, writes, writeCpuS } = simulate(ONE)
    expect(deliveries).toBe(10_000)
    expect(writes).toBe(10_000)
    expect(writeCpuS).toBeCloseTo(0.04, 6)
    expect(p50Ms / 20).toBeCloseTo(1, 1)
    expect(p99Ms / 39.6).toBeCloseTo(1, 1)
    expect(maxMs / 40).toBeCloseTo(1, 1)
  })

  it('is divided among nodes while there are cores', () => {
    const two = simulate({ ...ONE, nodes: 2 })
    const four = simulate({ ...ONE, nodes: 4 })
    expect(two.p99Ms / simulate(ONE).p99Ms).toBeCloseTo(0.5, 1)
    expect(four.p99Ms / two.p99Ms).toBeCloseTo(1, 1)
    expect(simulate({ ...ONE, nodes: 4, cores: 4 }).p99Ms / two.p99Ms).toBeCloseTo(0.5, 1)
  })

  it('waits for a reader on the same cores', () => {
    const beside = simulate({ ...ONE, cores: 1, readS: 4e-6 })
    expect(beside.p99Ms / simulate(ONE).p99Ms).toBeCloseTo(2, 1)
    expect(simulate({ ...ONE, readS: 4e-6 }).p99Ms / simulate(ONE).p99Ms).toBeCloseTo(1, 1)
    // Two nodes and a reader on two cores: each has two thirds of a core.
    expect(simulate({ ...ONE, nodes: 2, readS: 2e-6 }).p99Ms).toBeGreaterThan(
      simulate({ ...ONE, nodes: 2 }).p99Ms * 1.2,
    )
  })

  it('adds the hop to every delivery', () => {
    expect(simulate({ ...ONE, hopS: 0.1 }).p50Ms).toBeCloseTo(120, -1)
  })

  it('puts messages into one write when they come faster than it writes', () => {
    const load = { ...ONE, connections: 1_000, messages: 200, messagesPerSecond: 1_000, frameS: 1e-7 }
    const { writes, deliveries } = simulate(load)
    const { framesPerWrite } = paceOf({ connections: 1_000, messagesPerSecond: 1_000, writeS: 4e-6, frameS: 1e-7 })
    expect(framesPerWrite).toBeGreaterThan(5)
    expect(deliveries / writes / framesPerWrite).toBeGreaterThan(0.7)
    expect(deliveries / writes / framesPerWrite).toBeLessThan(1.4)
  })

  it('does not go on for ever when readers do not keep up', () => {
    expect(() => simulate({ ...ONE, messages: 1e9, messagesPerSecond: 1e3, readS: 1 })).toThrow(RangeError)
  })
})

describe('the pace of a thread', () => {
  it('is one message per write until three quarters of its time', () => {
    const load = { connections: 1_000, writeS: 4e-6, frameS: 0 }
    expect(paceOf({ ...load, messagesPerSecond: 180 })).toEqual({ framesPerWrite: 1, busyShare: 0.72, cycleS: 0 })
    const busy = paceOf({ ...load, messagesPerSecond: 1_000 })
    expect(busy.cycleS).toBeCloseTo(0.01, 3)
    expect(busy.busyShare).toBeCloseTo(0.4, 2)
    expect(busy.framesPerWrite).toBeCloseTo(10, 0)
  })
})
