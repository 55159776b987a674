import { describe, expect, it } from 'vitest'
import type { ConnectionRecord, FleetLog, Received, UserRecord } from './log.js'
import type { FaultWindow, FleetObservation } from './observation.js'
import { mostWithin } from './recovery.js'
import { fleetTimeline } from './timeline.js'
import { percentiles, windowFigures } from './window-figures.js'

const S = 1_000_000
const NOTHING: FleetLog = {
  deliveries: [],
  acceptedUs: [],
  retriedUs: [],
  failures: [],
  connections: [],
  gaps: [],
  irregularities: [],
  publications: new Map(),
  users: [],
}
const WHOLE: FaultWindow = {
  fault: 'kill',
  startUs: 0,
  repairedUs: 5 * S,
  endUs: 10 * S,
  breaks: 'one-node',
  brokenNodes: ['a'],
}

function observationOf(log: Partial<FleetLog>, windows = [WHOLE]): FleetObservation {
  return { startUs: 0, endUs: 10 * S, log: { ...NOTHING, ...log }, windows, nodeNames: [['a', 'a2'], ['b']], usage: [] }
}

function figuresOf(log: Partial<FleetLog>, window: Partial<FaultWindow> = {}) {
  return windowFigures(observationOf(log), { ...WHOLE, ...window })
}

/** Ten messages of key `k`, one per second, all accepted. */
const TEN = new Map([
  [
    'k',
    Array.from({ length: 10 }, (_, second) => ({ createdUs: second * S, startedUs: second * S, isAccepted: true })),
  ],
])

function userOf(received: Received | undefined, readyUs = -1): UserRecord {
  return {
    client: 'user-0',
    isStream: false,
    readyUs,
    keys: ['k'],
    received: new Map(received === undefined ? [] : [['k', received]]),
  }
}

const HOLE = { from: 3, to: 6, beforeUs: 2.5 * S, afterUs: 6.5 * S }
const WITH_HOLE: Received = { first: 0, next: 10, holes: [HOLE] }

describe('messages that users should have got', () => {
  it('are all that were accepted after their listen', () => {
    const all = userOf({ first: 0, next: 10, holes: [] })
    expect(figuresOf({ publications: TEN, users: [all] })).toMatchObject({
      publishedCount: 10,
      expectedCount: 10,
      deliveredCount: 10,
      lostCount: 0,
    })
    const late = userOf({ first: 5, next: 10, holes: [] }, 4.5 * S)
    expect(figuresOf({ publications: TEN, users: [late] })).toMatchObject({ expectedCount: 5, lostCount: 0 })
  })

  it('are lost when they come neither first, last nor in between', () => {
    expect(figuresOf({ publications: TEN, users: [userOf(WITH_HOLE)] })).toMatchObject({
      expectedCount: 10,
      deliveredCount: 7,
      lostCount: 3,
      missedInGapCount: 0,
      examples: [
        'lost: user-0, k 3, published 3,000 ms after the fault',
        'lost: user-0, k 4, published 4,000 ms after the fault',
        'lost: user-0, k 5, published 5,000 ms after the fault',
      ],
    })
    const short = userOf({ first: 2, next: 9, holes: [] })
    expect(figuresOf({ publications: TEN, users: [short] }).lostCount).toBe(3)
    expect(figuresOf({ publications: TEN, users: [userOf(undefined)] }).lostCount).toBe(10)
  })

  it('are missed, not lost, when a gap was told in their place', () => {
    const gapAt = (atUs: number) => [{ client: 'user-0', atUs, reason: 'history-expired' }]
    const log = { publications: TEN, users: [userOf(WITH_HOLE)] }
    expect(figuresOf({ ...log, gaps: gapAt(6 * S) })).toMatchObject({
      lostCount: 0,
      missedInGapCount: 3,
      toldGapCount: 1,
      deliveredCount: 7,
    })
    // A gap excuses nothing that was published after it, and nothing elsewhere.
    expect(figuresOf({ ...log, gaps: gapAt(4 * S) })).toMatchObject({ lostCount: 1, missedInGapCount: 2 })
    expect(figuresOf({ ...log, gaps: gapAt(8 * S) })).toMatchObject({ lostCount: 3, missedInGapCount: 0 })
    const other = [{ client: 'user-1', atUs: 6 * S, reason: 'history-expired' }]
    expect(figuresOf({ ...log, gaps: other })).toMatchObject({ lostCount: 3 })
  })

  it('are not those that were refused', () => {
    const refused = (TEN.get('k') ?? []).map((one, number) => ({ ...one, isAccepted: number !== 4 }))
    const log = { publications: new Map([['k', refused]]), users: [userOf(WITH_HOLE)] }
    expect(figuresOf(log)).toMatchObject({ publishedCount: 10, expectedCount: 9, lostCount: 2 })
  })

  it('count where they arose', () => {
    const figures = figuresOf(
      {
        publications: TEN,
        users: [userOf(WITH_HOLE)],
        irregularities: [
          { kind: 'doubled', client: 'user-0', key: 'k', number: 1, createdUs: S },
          { kind: 'out of order', client: 'user-0', key: 'k', number: 5, createdUs: 5 * S },
        ],
      },
      { startUs: 5 * S, repairedUs: 6 * S },
    )
    expect(figures).toMatchObject({ expectedCount: 5, lostCount: 1, duplicateCount: 0, reorderedCount: 1 })
  })
})

function connection(client: string, node: string, span: readonly [number, number | null], firstS: number | null) {
  const [openedS, endedS] = span
  return {
    client,
    node,
    openedUs: Math.round(openedS * S),
    endedUs: endedS === null ? null : Math.round(endedS * S),
    firstUs: firstS === null ? null : Math.round(firstS * S),
  } satisfies ConnectionRecord
}

describe('recovery', () => {
  const users = [userOf(undefined)]
  const connections = [
    connection('user-0', 'a', [-2, 3], -1),
    connection('publisher-0', 'a', [-2, 3.1], -1),
    connection('user-1', 'b', [-2, 4], -1),
    connection('user-0', 'b', [3.5, null], 3.6),
    connection('publisher-0', 'b', [4.1, null], 4.2),
    connection('user-1', 'b', [4.25, null], 4.3),
  ]

  it('is counted from the fault for clients of a broken node, from the close for others', () => {
    expect(figuresOf({ users, connections })).toMatchObject({
      faultMs: 5_000,
      deliveryMs: 3_600,
      publishMs: 4_200,
      reconnectCount: 3,
      reconnectMs: { p50: 3_500, max: 4_100 },
      allConnectedMs: 4_250,
      mostOpenedIn100Ms: 1,
      mostOpenedIn1S: 3,
    })
  })

  it('is counted from the close when a node drains', () => {
    const figures = figuresOf({ users, connections }, { breaks: 'all-nodes', brokenNodes: ['a', 'b'] })
    expect(figures.reconnectMs).toEqual({ p50: 500, p99: 1_000, max: 1_000 })
    expect(figures).toMatchObject({ deliveryMs: 3_600, publishMs: 4_200 })
  })

  it('is counted from the repair when the way to the broker was broken', () => {
    const log = {
      deliveries: [4, 5.2, 6].map((s) => ({ atUs: s * S, latencyUs: 1, isStream: false })),
      acceptedUs: [4.9 * S, 5.1 * S],
    }
    const figures = figuresOf(log, { breaks: 'broker', brokenNodes: [] })
    expect(figures.deliveryMs).toBeCloseTo(200)
    expect(figures.publishMs).toBeCloseTo(100)
  })

  it('is nothing where nothing was broken, or nobody tried', () => {
    const none = { deliveryMs: null, publishMs: null, reconnectCount: 0, allConnectedMs: null }
    expect(figuresOf({})).toMatchObject({ ...none, reconnectMs: { p50: null, p99: null, max: null } })
    expect(figuresOf({}, { breaks: null })).toMatchObject({ ...none, faultMs: null })
  })
})

it('counts the most times within a span, whichever it is', () => {
  expect(mostWithin([], 100)).toBe(0)
  expect(mostWithin([500, 0, 99, 100, 150], 100)).toBe(3)
})

it('takes percentiles by the nearest rank', () => {
  const values = Array.from({ length: 100 }, (_, index) => 100 - index)
  expect(percentiles(values)).toEqual({ p50: 50, p99: 99, max: 100 })
})

describe('the timeline', () => {
  const usage = [0, 5, 10].map((s) => ({ atUs: s * S, nodes: s / 2, broker: null, balancer: s, clients: s }))
  const log = {
    connections: [connection('user-0', 'a', [0.2, 2.1], null), connection('user-0', 'a2', [3, null], null)],
    deliveries: [0.7, 0.8].map((s) => ({ atUs: s * S, latencyUs: s * 1_000, isStream: false })),
    gaps: [{ client: 'user-0', atUs: 3 * S, reason: 'history-expired' }],
  }
  const none = { ...WHOLE, fault: 'none', breaks: null, endUs: 2 * S } as const
  const observation = { ...observationOf(log, [none, { ...WHOLE, startUs: 2 * S }]), usage }
  const { bands, panels, stepMs } = fleetTimeline('webmq-native+redis', observation)
  const valuesOf = (title: string, line = 0) => panels.find((panel) => panel.title === title)?.lines[line]?.values

  it('has a band for each fault, while it was not repaired', () => {
    expect(bands).toEqual([{ label: 'kill', fromMs: 2_000, toMs: 5_000 }])
  })

  it('has the values of each half second', () => {
    expect(stepMs).toBe(500)
    for (const { lines } of panels) for (const { values } of lines) expect(values).toHaveLength(20)
    expect(valuesOf('Connections')?.slice(0, 7)).toEqual([1, 1, 1, 1, 0, 1, 1])
    expect(valuesOf('Connections', 1)?.every((count) => count === 0)).toBe(true)
    expect(valuesOf('Deliveries per second')?.slice(0, 3)).toEqual([0, 4, 0])
    expect(valuesOf('Connections opened per second')?.slice(0, 7)).toEqual([2, 0, 0, 0, 0, 0, 2])
    expect(valuesOf('Gaps told')?.[6]).toBe(1)
    expect(valuesOf('Latency p99')?.slice(0, 3)).toEqual([null, 0.8, null])
    expect(valuesOf('CPU cores')?.[3]).toBeCloseTo(0.5)
    expect(valuesOf('CPU cores', 1)?.[3]).toBeNull()
  })
})
