import { describe, expect, it } from 'vitest'
import { DEFAULT_ASSUMPTIONS } from './assumptions.js'
import { ROUND_COSTS } from './fixture.js'
import { keyPresence, nodeLoad } from './node-load.js'
import { predict } from './predict.js'
import { MODEL_BROKERS, type ModelBroker, type Question, type Size, sizeOf, trySize } from './size.js'
import { firstWall } from './wall.js'
import { readWorkload, shareOf, trafficOf, type Workload } from './workload.js'

/** 10 listeners per key; each connection publishes every 100 s. */
const ROOMS: Workload = {
  name: 'rooms',
  listensPerConnection: 2,
  listenersPerKey: 10,
  clientPublishesPerSecond: 0.01,
  serverPublishesPerSecond: 0,
  payloadBytes: 100,
  loggedShare: 1,
  sessionSeconds: 1_000,
  split: 'keys',
}

const question = (kind: ModelBroker, connections: number, more: Partial<Question> = {}): Question => ({
  coefficients: ROUND_COSTS,
  kind,
  workload: ROOMS,
  connections,
  assumptions: DEFAULT_ASSUMPTIONS,
  ...more,
})

describe('the traffic of a workload', () => {
  it('follows from connections, keys and rates', () => {
    expect(trafficOf(ROOMS, 100_000)).toEqual({
      connections: 100_000,
      keys: 20_000,
      listenersPerKey: 10,
      publishesPerSecond: 1_000,
      serverPublishesPerSecond: 0,
      deliveriesPerSecond: 10_000,
      connectsPerSecond: 100,
    })
    expect(trafficOf(readWorkload('broadcast'), 1_000)).toMatchObject({
      keys: 1,
      listenersPerKey: 1_000,
      deliveriesPerSecond: 2_000,
    })
  })

  it('is divided by keys, or copied, among several brokers', () => {
    expect(shareOf(ROOMS, trafficOf(ROOMS, 100_000), 4)).toMatchObject({
      connections: 25_000,
      publishesPerSecond: 250,
      listenersPerKey: 10,
    })
    const broadcast = readWorkload('broadcast')
    expect(shareOf(broadcast, trafficOf(broadcast, 1_000), 4)).toMatchObject({
      connections: 250,
      publishesPerSecond: 2,
      deliveriesPerSecond: 500,
    })
  })
})

describe('the load of a node', () => {
  it('is what a calculation by hand gives', () => {
    const traffic = trafficOf(ROOMS, 100_000)
    const setting = {
      node: ROUND_COSTS.node,
      broker: ROUND_COSTS.brokers.redis,
      workload: ROOMS,
      traffic,
      assumptions: DEFAULT_ASSUMPTIONS,
    }
    const load = nodeLoad(setting, 2)
    // Idle 0.01; 1,000 logged/s x 15 us; 2,000 pings/s x 10 us; 50 connects/s x 50 us; 500 publishes/s x (20 + 30) us.
    expect(load.mainCores).toBeCloseTo(0.01 + 0.015 + 0.02 + 0.0025 + 0.025, 9)
    expect(load.followCores).toBeCloseTo(0.015, 9)
    // 5,000 deliveries/s, one per write: 4 us, 0.1 us, 100 bytes of 1 ns.
    expect(load.writeCores).toBeCloseTo(5_000 * 4.2e-6, 9)
    expect(load.memoryBytes).toBeCloseTo(100e6 + 16 * 1024 * 1024 + 50_000 * 5_000, 0)
    expect(load.outBytesPerSecond).toBeCloseTo(5_000 * (130 + 66), 6)
  })

  it('puts several messages into a write only when its threads are busy', () => {
    const traffic = trafficOf({ ...ROOMS, clientPublishesPerSecond: 10 }, 10_000)
    const setting = {
      node: ROUND_COSTS.node,
      broker: undefined,
      workload: ROOMS,
      traffic,
      assumptions: DEFAULT_ASSUMPTIONS,
    }
    expect(nodeLoad(setting, 20).framesPerWrite).toBe(1)
    const busy = nodeLoad(setting, 1)
    expect(busy.framesPerWrite).toBeGreaterThan(1.5)
    expect(busy.writeCores).toBeLessThan(10_000 * 100 * 4.2e-6)
  })

  it('has a share of the keys: all on one node, each where its listeners are kept together', () => {
    const traffic = trafficOf(ROOMS, 100_000)
    expect(keyPresence(traffic, 1, false)).toBe(1)
    expect(keyPresence(traffic, 2, false)).toBeCloseTo(1 - 2 ** -10, 9)
    expect(keyPresence(traffic, 100, false)).toBeCloseTo(1 - 0.99 ** 10, 9)
    expect(keyPresence(traffic, 100, true)).toBeCloseTo(0.01, 9)
  })
})

describe('a prediction', () => {
  it.each(MODEL_BROKERS)('needs no less for more connections: %s', (kind) => {
    const found = [1e3, 1e4, 1e5, 1e6, 1e7].map((connections) => predict(question(kind, connections)))
    const sizes = found.map((one) => (typeof one === 'string' ? Number.NaN : one))
    for (const [index, size] of sizes.entries()) {
      const before = sizes[index - 1]
      if (typeof size !== 'object' || typeof before !== 'object') continue
      expect(size.nodes).toBeGreaterThanOrEqual(before.nodes)
      expect(size.busyCores).toBeGreaterThan(before.busyCores)
      expect(size.memoryBytes).toBeGreaterThan(before.memoryBytes)
      expect(size.outBytesPerSecond).toBeGreaterThan(before.outBytesPerSecond)
    }
    expect(sizes.every((size) => typeof size === 'object')).toBe(true)
  })

  it('has several brokers where one is not enough, and none that costs more than it saves', () => {
    const size = sizeOf(question('redis', 1e7))
    if (typeof size === 'string') throw new Error(size)
    expect(size.brokers).toBeGreaterThan(1)
    expect(typeof trySize(question('redis', 1e7), 1)).toBe('string')
    const more = trySize(question('redis', 1e7), size.brokers * 2)
    if (typeof more === 'string') throw new Error(more)
    const coresOf = ({ brokers, nodesPerBroker }: Size) => brokers * (nodesPerBroker * 4 + 1)
    expect(1.25 * coresOf(more)).toBeGreaterThanOrEqual(coresOf(size))
    expect(size.node.connections).toBeLessThanOrEqual(DEFAULT_ASSUMPTIONS.nodeConnections)
  })

  it('costs what its cores and memory cost', () => {
    const found = predict(question('memory', 1_000))
    if (typeof found === 'string') throw new Error(found)
    const { coreHourPrice, gibHourPrice } = DEFAULT_ASSUMPTIONS
    expect(found.pricePerHour).toBeCloseTo(4 * coreHourPrice + (found.memoryBytes / 2 ** 30) * gibHourPrice, 9)
    expect(found.latency.p99Ms).toBeGreaterThan(found.latency.p50Ms)
  })

  it('follows fewer logged messages with partitions, where connections are kept together', () => {
    const assumptions = { ...DEFAULT_ASSUMPTIONS, historyPartitions: 16 }
    const followed = (one: Partial<Question>) => {
      const size = trySize(question('nats', 1e6, one), 1)
      return typeof size === 'string' ? Number.NaN : size.node.receivedPerSecond
    }
    expect(followed({ assumptions })).toBeCloseTo(followed({}), 3)
    expect(followed({ assumptions: { ...assumptions, isSharded: true } })).toBeLessThan(followed({}) / 5)
  })
})

describe('the first wall', () => {
  it('is where a system still fits, and a little more does not', () => {
    for (const kind of MODEL_BROKERS) {
      const { connections, resource } = firstWall(question(kind, 0))
      expect(resource).not.toBeNull()
      expect(typeof trySize(question(kind, connections), 1)).toBe('object')
      expect(trySize(question(kind, connections * 1.02), 1)).toBe(resource)
    }
  })

  it('is the log at every node when nodes are slow, the broker when that is', () => {
    const slowNodes = { ...ROUND_COSTS, brokers: { nats: { ...ROUND_COSTS.brokers.nats, listenerLoggedUs: 1_000 } } }
    expect(firstWall(question('nats', 0, { coefficients: slowNodes as typeof ROUND_COSTS })).resource).toBe(
      'node-follow',
    )
    const slowBroker = { ...ROUND_COSTS, brokers: { redis: { ...ROUND_COSTS.brokers.redis, brokerLoggedUs: 1_000 } } }
    expect(firstWall(question('redis', 0, { coefficients: slowBroker as typeof ROUND_COSTS })).resource).toBe(
      'broker-cpu',
    )
    const slowLog = { ...ROUND_COSTS, brokers: { nats: { ...ROUND_COSTS.brokers.nats, brokerLoggedUs: 1_000 } } }
    expect(firstWall(question('nats', 0, { coefficients: slowLog as typeof ROUND_COSTS })).resource).toBe('broker-log')
    expect(firstWall(question('memory', 0)).resource).toBe('one-node')
  })

  it('moves with partitions of the log', () => {
    const coefficients = {
      ...ROUND_COSTS,
      brokers: { nats: { ...ROUND_COSTS.brokers.nats, brokerLoggedUs: 1_000 } },
    } as typeof ROUND_COSTS
    const at = (historyPartitions: number) =>
      firstWall(question('nats', 0, { coefficients, assumptions: { ...DEFAULT_ASSUMPTIONS, historyPartitions } }))
        .connections
    expect(at(4) / at(1)).toBeCloseTo(4, 0)
  })
})
