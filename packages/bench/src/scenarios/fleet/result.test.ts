import { describe, expect, it } from 'vitest'
import { type ConnectionRecord, STREAM_NODE, type UserRecord } from './log.js'
import type { FleetObservation } from './observation.js'
import { readFleetConfig } from './options.js'
import { type FleetRow, fleetRows } from './result.js'

const S = 1_000_000
const SECONDS = Array.from({ length: 10 }, (_, second) => second * S)

function user(client: string, isStream: boolean, next: number): UserRecord {
  const received = new Map([['k', { first: 0, next, holes: [] }]])
  return { client, isStream, readyUs: -1, keys: ['k'], received }
}

/** A killed node, `a`, is noticed at 1.5 s: the client is away from 1 s until `backS`. */
function moved(client: string, backS: number, node = 'a', next = 'b'): ConnectionRecord[] {
  const [lostUs, backUs] = [1.5 * S, backS * S]
  return [
    { client, node, openedUs: 0, endedUs: lostUs, firstUs: 0 },
    { client, node: next, openedUs: backUs, endedUs: null, firstUs: backUs },
  ]
}

/** Ten messages to one user of each kind; the event stream misses the last two and has more of every trouble. */
const OBSERVATION: FleetObservation = {
  startUs: 0,
  endUs: 10 * S,
  nodeNames: [['a'], ['b']],
  usage: [0, 10].map((s) => ({ atUs: s * S, nodes: s / 10, broker: s, balancer: s, clients: s })),
  windows: [{ fault: 'kill', startUs: S, repairedUs: 5 * S, endUs: 10 * S, breaks: 'one-node', brokenNodes: ['a'] }],
  log: {
    publications: new Map([['k', SECONDS.map((us) => ({ createdUs: us, startedUs: us, isAccepted: true }))]]),
    users: [user('user-0', true, 8), user('user-1', false, 10)],
    deliveries: SECONDS.flatMap((us) => [
      { atUs: us, latencyUs: 2_000, isStream: false },
      { atUs: us, latencyUs: 9_000, isStream: true },
    ]),
    connections: [...moved('user-0', 4, STREAM_NODE, STREAM_NODE), ...moved('user-1', 2), ...moved('publisher-0', 3)],
    gaps: [{ client: 'user-0', atUs: 2 * S, reason: 'history-expired' }],
    irregularities: [
      { kind: 'doubled', client: 'user-0', key: 'k', number: 3, createdUs: 3 * S },
      { kind: 'out of order', client: 'user-1', key: 'k', number: 4, createdUs: 4 * S },
    ],
    acceptedUs: SECONDS,
    retriedUs: [2 * S],
    failures: [{ atUs: 2 * S, reason: 'refused' }],
  },
}

function rowsWith(eventStreams: number): FleetRow[] {
  const given = { broker: ['redis'], balancer: ['haproxy'], users: 2, publishers: 1, backends: 2, eventStreams }
  const config = readFleetConfig({ ...given, messageSize: 100, transport: 'native' })
  return fleetRows({ kind: 'redis', balancer: 'haproxy' }, config, OBSERVATION)
}

describe('the rows of a fault', () => {
  const [webSocket, stream] = rowsWith(1)

  it('judge users by WebSocket and by event stream apart, by the same rules', () => {
    expect(webSocket).toMatchObject({ listensBy: 'WebSocket', listenerCount: 1, subscribers: 2, fault: 'kill' })
    expect(webSocket).toMatchObject({ expectedCount: 9, gapCount: 0, duplicateCount: 0, reorderedCount: 1 })
    expect(webSocket).toMatchObject({ toldGapCount: 0, deliveryMs: 1_000, latencyMs: { max: 2 } })
    expect(stream).toMatchObject({ listensBy: 'SSE', listenerCount: 1, subscribers: 2, fault: 'kill' })
    expect(stream).toMatchObject({ expectedCount: 9, gapCount: 2, duplicateCount: 1, reorderedCount: 0 })
    expect(stream).toMatchObject({ toldGapCount: 1, deliveryMs: 3_000, latencyMs: { max: 9 } })
    expect(stream?.reconnectMs).toEqual({ p50: 3_000, p99: 3_000, max: 3_000 })
    expect(webSocket?.verdictReason).toBe('1 out of order, 1 publishes failed')
    expect(stream?.verdictReason).toBe('2 lost, 1 doubled, 1 gaps told although all keys are logged')
  })

  it('have publishers and CPU beside the WebSockets alone', () => {
    expect(webSocket).toMatchObject({ publishMs: 2_000, retriedCount: 1, failedPublishCount: 1, reconnectCount: 2 })
    expect(webSocket?.serverCpuSeconds).toBeCloseTo(0.9)
    expect(stream).toMatchObject({ publishedCount: 9, publishMs: null, retriedCount: 0, failedPublishCount: 0 })
    expect(stream).toMatchObject({ reconnectCount: 1, serverCpuSeconds: null, brokerCpuSeconds: null })
  })

  it('are one where nobody listens by an event stream', () => {
    expect(rowsWith(0).map(({ listensBy }) => listensBy)).toEqual(['WebSocket'])
  })
})
