import { describe, expect, it } from 'vitest'
import type { LoadResult } from '../../generator/messages.js'
import { type DeliveryTally, Receiver } from '../../generator/receiver.js'
import { KeyPlan, type Publication } from '../../load/key-plan.js'
import { PayloadEncoder } from '../../load/payload.js'
import { publicationsOf } from '../../load/send-schedule.js'
import { createLatencyHistogram, recordUs } from '../../measure/latency-histogram.js'
import type { ClientsConfig, ClientsReport } from '../../results/clients-report.js'
import { clientsMetrics } from './metrics.js'
import { planOptionsOf } from './options.js'
import { type ClientsObservation, summarizeClients } from './result.js'
import { clientsText } from './text.js'

const CONFIG: ClientsConfig = {
  clients: 20,
  backends: 2,
  listens: 3,
  publishRate: 5,
  keyPoolSize: 10,
  duration: 2,
  warmup: 1,
  messageSize: 128,
  broker: 'redis',
  transport: 'native',
  clientsBy: 'library',
  seed: 3,
  workers: 1,
}
const WINDOW = { startUs: 1_000_000_000, endUs: 1_002_000_000 }
const TRANSIT_US = 1_500

/** One delivery on its way, which a faulty server may drop, double, delay or damage. */
interface Delivery {
  readonly listener: number
  readonly publication: Publication
  payload: unknown
  atUs: number
}

type Fault = (deliveries: Delivery[]) => Delivery[]

/** What the clients of a run saw over a network that delivers everything after 1.5 ms, except for the fault. */
function loadOf(fault: Fault): LoadResult {
  const plan = new KeyPlan(planOptionsOf(CONFIG))
  const encoder = new PayloadEncoder(CONFIG.messageSize, CONFIG.seed)
  const publications = publicationsOf(plan)
  const tallies = [tally(), tally()]
  const bounds = { clientCount: CONFIG.clients, maxTurnCount: 10, sizeBytes: CONFIG.messageSize }
  const receivers = Array.from({ length: CONFIG.clients }, (_, client) => {
    return new Receiver(CONFIG.listens, bounds, tallies[client % 2] ?? tally())
  })
  const deliveries = publications.flatMap((publication): Delivery[] =>
    receivers.flatMap((_, listener) =>
      plan.listensOf(listener).includes(publication.key)
        ? [
            {
              listener,
              publication,
              payload: encoder.encode(publication),
              atUs: WINDOW.startUs + publication.atUs + TRANSIT_US,
            },
          ]
        : [],
    ),
  )
  let lastArrivalUs = 0
  for (const { listener, publication, payload, atUs } of fault(deliveries)) {
    const slot = plan.listensOf(listener).indexOf(publication.key)
    receivers[listener]?.receive(slot, slot !== -1, payload, WINDOW, atUs)
    lastArrivalUs = Math.max(lastArrivalUs, atUs)
  }
  const counted = publications.filter(({ turn }) => turn >= 0)
  const sendLag = createLatencyHistogram()
  recordUs(sendLag, 80)
  return {
    perBackend: tallies.map((tally, backend) => ({
      ...tally,
      backend,
      clientCount: 10,
      publishedCount: counted.filter(({ client }) => client % 2 === backend).length,
    })),
    expectedCount: counted.reduce((sum, { key }) => sum + plan.listenerCount(key), 0),
    publishedInWindowCount: counted.length,
    acknowledgedCount: counted.length,
    publishErrorCount: 0,
    reconnectCount: 0,
    gapCount: 0,
    clientErrorCount: 0,
    closedCount: 0,
    lastSendUs: WINDOW.endUs - 10_000,
    lastArrivalUs,
    sendLag,
    eventLoopLag: sendLag,
    utilization: 0.3,
  }
}

function simulate(
  fault: Fault = (deliveries) => deliveries,
  changes: Partial<ClientsObservation> = {},
  config = CONFIG,
): ClientsReport {
  const eventLoopLagMs = { p50: 0.1, p95: 0.2, p99: 0.3, max: 0.4 }
  const sample = { rssBytes: 5e7, peakRssBytes: 6e7, refusedCount: 3, eventLoopLagMs }
  return summarizeClients(config, {
    loads: [loadOf(fault)],
    windowEndUs: WINDOW.endUs,
    hasDrainTimedOut: false,
    ports: [8080, 8081],
    samples: {
      start: [
        { ...sample, cpuSeconds: 1 },
        { ...sample, cpuSeconds: 1 },
      ],
      end: [
        { ...sample, cpuSeconds: 1.4 },
        { ...sample, cpuSeconds: 1.3 },
      ],
      drained: [
        { ...sample, cpuSeconds: 1.5, refusedCount: 7 },
        { ...sample, cpuSeconds: 1.5 },
      ],
    },
    brokerCpuSeconds: 0.25,
    generatorCpuSeconds: 0.7,
    windowCpu: { cores: 4, machine: 2.4, generator: 0.6, broker: 0.2 },
    windowSeconds: 2,
    isInterrupted: false,
    moments: [0, 1, 2].map((second) => ({
      atMs: 5_000 + second * 1_000,
      counts: {
        published: 0,
        delivered: 60 * second,
        servers: second / 4,
        generator: second,
        broker: null,
        machine: 2,
      },
    })),
    ...changes,
  })
}

function tally(): DeliveryTally {
  return {
    deliveredCount: 0,
    deliveredInWindowCount: 0,
    duplicateCount: 0,
    reorderedCount: 0,
    unexpectedCount: 0,
    latency: createLatencyHistogram(),
  }
}

const isCounted = ({ publication }: Delivery) => publication.turn >= 0

/** Two deliveries of one publisher and key to one listener, the earlier first. */
function findPair(deliveries: readonly Delivery[]): [number, number] {
  const places = new Map<string, number>()
  for (const [place, delivery] of deliveries.entries()) {
    if (!isCounted(delivery)) continue
    const id = `${delivery.listener} ${delivery.publication.client} ${delivery.publication.key}`
    const earlier = places.get(id)
    if (earlier !== undefined) return [earlier, place]
    places.set(id, place)
  }
  throw new Error('the plan has no such pair')
}

describe('the result of a run', () => {
  it('is clean when everything arrives', () => {
    const { results, irregularities, verdict } = simulate()
    // 20 clients x 5/s x 2 s, each to one of 10 keys with 20 x 3 listens: 6 listeners on average.
    expect(results.publishedCount).toBe(200)
    expect(results.expectedCount).toBeGreaterThan(200 * 4)
    expect(results.expectedCount).toBeLessThan(200 * 8)
    expect(results).toMatchObject({
      deliveredCount: results.expectedCount,
      lossRatio: 0,
      duplicateCount: 0,
      reorderedCount: 0,
      fanOutRatio: results.expectedCount / 200,
      drainMs: 0,
      latencyMs: { p50: 1.5, p95: 1.5, p99: 1.5, max: 1.5 },
    })
    expect(irregularities.refusedCount).toBe(4)
    expect(irregularities.unexpectedCount).toBe(0)
    expect(verdict).toBe('ok')
  })

  it('shows a lost message', () => {
    const { results } = simulate((deliveries) => {
      const victim = deliveries.findIndex(isCounted)
      return deliveries.filter((_, place) => place !== victim)
    })
    expect(results.expectedCount - results.deliveredCount).toBe(1)
    expect(results.lossRatio).toBeCloseTo(1 / results.expectedCount, 12)
    expect(results.duplicateCount).toBe(0)
  })

  it('shows a duplicate', () => {
    const { results } = simulate((deliveries) =>
      deliveries.flatMap((each, place) => (place === 900 ? [each, each] : [each])),
    )
    expect(results).toMatchObject({ duplicateCount: 1, lossRatio: 0, reorderedCount: 0 })
  })

  it('does not let a duplicate make up for a loss', () => {
    const { results } = simulate((deliveries) =>
      deliveries.flatMap((each, place) => (place === 900 ? [each, each] : place === 901 ? [] : [each])),
    )
    expect(results.expectedCount - results.deliveredCount).toBe(1)
    expect(results.duplicateCount).toBe(1)
  })

  it('shows two messages of one publisher and key that have changed places', () => {
    const { results } = simulate((deliveries) => {
      const [earlier, later] = findPair(deliveries)
      const moved = deliveries.splice(earlier, 1)
      deliveries.splice(later, 0, ...moved)
      return deliveries
    })
    expect(results).toMatchObject({ reorderedCount: 1, lossRatio: 0, duplicateCount: 0 })
  })

  it('shows a message that came to the wrong listener', () => {
    const { results, irregularities } = simulate((deliveries) => {
      const [each] = deliveries.filter(isCounted)
      if (each === undefined) return []
      const plan = new KeyPlan(planOptionsOf(CONFIG))
      const stranger = Array.from({ length: 20 }, (_, client) => client).find(
        (client) => !plan.listensOf(client).includes(each.publication.key),
      )
      return [...deliveries, { ...each, listener: stranger ?? -1 }]
    })
    expect(irregularities.unexpectedCount).toBe(1)
    expect(results.lossRatio).toBe(0)
  })

  it('counts a damaged message as lost and as unexpected', () => {
    const { results, irregularities } = simulate((deliveries) => {
      const victim = deliveries.find(isCounted)
      if (victim !== undefined) victim.payload = { ...(victim.payload as object), pad: 'cut' }
      return deliveries
    })
    expect(irregularities.unexpectedCount).toBe(1)
    expect(results.expectedCount - results.deliveredCount).toBe(1)
  })

  it('leaves the warm-up out of every figure', () => {
    const withoutWarmup = simulate((deliveries) => deliveries.filter(isCounted))
    expect(withoutWarmup).toEqual(simulate())
  })

  it('shows held-back messages as latency from the intended time, as drain and as a lower rate, not as loss', () => {
    const { results, rates } = simulate((deliveries) => {
      for (const each of deliveries.filter(isCounted).slice(-100)) each.atUs = WINDOW.endUs + 700_000
      return deliveries
    })
    expect(results.lossRatio).toBe(0)
    expect(results.drainMs).toBe(700)
    expect(results.latencyMs.max).toBeGreaterThan(700)
    expect(rates.deliveredPerSecond).toBeCloseTo((results.deliveredCount - 100) / 2, 9)
    expect(rates.expectedPerSecond).toBeCloseTo(results.expectedCount / 2, 9)
  })

  it.each([
    ['kept up', {}, 'ok'],
    ['was busy nearly all the time', { utilization: 0.95 }, 'generator saturated'],
    ['had a late event loop', { eventLoopLagUs: 40_000 }, 'generator saturated'],
    ['sent late', { sendLagUs: 40_000 }, 'generator saturated'],
    ['sent late by more than half of the latency', { sendLagUs: 5_100 }, 'generator saturated'],
    ['sent late by less than half of the latency', { sendLagUs: 4_900 }, 'ok'],
    ['sent late by next to nothing, as the latency is next to nothing', { latencyUs: 1_500, sendLagUs: 1_000 }, 'ok'],
  ])("says whether the figures are the server's when the generator %s", (_, generator, verdict) => {
    const {
      latencyUs = 10_000,
      sendLagUs = 100,
      eventLoopLagUs = 100,
      utilization = 0.3,
    } = generator as {
      latencyUs?: number
      sendLagUs?: number
      eventLoopLagUs?: number
      utilization?: number
    }
    const histogramOf = (durationUs: number) => {
      const histogram = createLatencyHistogram()
      recordUs(histogram, durationUs)
      return histogram
    }
    const load: LoadResult = {
      perBackend: [
        {
          ...tally(),
          backend: 0,
          clientCount: 1,
          publishedCount: 1,
          deliveredInWindowCount: 1,
          latency: histogramOf(latencyUs),
        },
      ],
      expectedCount: 1,
      publishedInWindowCount: 1,
      acknowledgedCount: 1,
      publishErrorCount: 0,
      reconnectCount: 0,
      gapCount: 0,
      clientErrorCount: 0,
      closedCount: 0,
      lastSendUs: 0,
      lastArrivalUs: 0,
      sendLag: histogramOf(sendLagUs),
      eventLoopLag: histogramOf(eventLoopLagUs),
      utilization,
    }
    expect(simulate(undefined, { loads: [load] }).verdict).toBe(verdict)
  })

  describe('of a load that was not carried', () => {
    const held: Fault = (deliveries) => {
      for (const each of deliveries.filter(isCounted).slice(-100)) each.atUs = WINDOW.endUs + 1_200_000
      return deliveries
    }
    const late = {
      rssBytes: 5e7,
      peakRssBytes: 6e7,
      refusedCount: 0,
      cpuSeconds: 1.4,
      eventLoopLagMs: { p50: 5, p95: 20, p99: 60, max: 80 },
    }

    it('blames a server whose event loop is full, else the broker, and without one the server', () => {
      const calm = simulate(held)
      const samples = { start: [late, late], end: [late, late], drained: [late, late] }
      expect(calm).toMatchObject({ verdict: 'broker saturated' })
      expect(calm.verdictReason).toMatch(/ deliveries\/s came within the window, the last 1,200ms after it$/)
      expect(simulate(held, { samples })).toMatchObject({ verdict: 'server saturated' })
      expect(simulate(held, {}, { ...CONFIG, broker: 'memory' })).toMatchObject({ verdict: 'server saturated' })
    })

    it('blames the generator when its own core was full', () => {
      expect(simulate(held, { loads: [{ ...loadOf(held), utilization: 0.95 }] })).toMatchObject({
        verdict: 'generator saturated',
      })
    })

    it('blames the machine when all its cores were busy, whoever else was full', () => {
      const windowCpu = { cores: 2, machine: 3.7, generator: 0.4, broker: 0.2 }
      const reason = '1.85 of 2 cores were busy: generator 0.20, servers 0.35, broker 0.10, others 1.20'
      for (const fault of [held, undefined]) {
        const report = simulate(fault, { windowCpu })
        expect(report).toMatchObject({ verdict: 'machine saturated', verdictReason: reason })
        expect(clientsText(report).split('\n')[0]).toBe(
          `Verdict: machine saturated (${reason}): the latencies are not the server's`,
        )
      }
      const refused = simulate(held, {
        windowCpu,
        loads: [{ ...loadOf(held), publishErrorCount: 3, firstPublishError: 'broker is unreachable' }],
      })
      expect(refused.verdictReason).toBe(`3 of 200, the first: broker is unreachable; ${reason}`)
    })

    it('says first that publishes failed, in the throughput too', () => {
      const report = simulate(held, {
        loads: [{ ...loadOf(held), publishErrorCount: 3, firstPublishError: 'broker is unreachable' }],
      })
      expect(report).toMatchObject({
        verdict: 'publishes failed',
        verdictReason: '3 of 200, the first: broker is unreachable',
      })
      expect(clientsText(report)).toContain('  Failed publishes: 3, the first: broker is unreachable')
      expect(clientsMetrics(report)).toMatchObject({ verdict: 'publishes failed', publishErrors: 3, saturated: 1 })
    })
  })

  it('divides by the time until the user ended the run, and says so', () => {
    const changes = {
      isInterrupted: true,
      windowSeconds: 0.5,
      windowCpu: { cores: 4, machine: 1, generator: 0.2, broker: null },
    }
    const report = simulate(undefined, changes)
    expect(report).toMatchObject({ interrupted: true, cores: { available: 4, busy: 2, generator: 0.4, broker: null } })
    expect(report.rates.expectedPerSecond).toBe(report.results.expectedCount / 0.5)
    expect(clientsText(report)).toContain('\nInterrupted: ')
    expect(simulate()).not.toHaveProperty('interrupted')
    expect(clientsText(simulate())).not.toContain('Interrupted')
  })

  it('has rates and cores of each step of the window, and the latencies as shares', () => {
    const { overTime, latencyBars } = simulate()
    expect(overTime).toEqual({
      stepMs: 1_000,
      publishedPerSecond: [0, 0],
      deliveredPerSecond: [60, 60],
      cores: { machine: [0, 0], servers: [0.25, 0.25], generator: [1, 1], broker: [null, null] },
    })
    expect(latencyBars?.edgesMs[0]).toBeCloseTo(TRANSIT_US / 1_000, 2)
    expect(latencyBars?.shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1)
  })

  it('attributes clients, deliveries and cost to their backend', () => {
    const { results, server } = simulate()
    expect(results.perBackend).toHaveLength(2)
    expect(results.perBackend[0]).toMatchObject({ backend: 0, port: 8080, clientCount: 10, publishedCount: 100 })
    expect(results.perBackend.reduce((sum, { deliveredCount }) => sum + deliveredCount, 0)).toBe(results.deliveredCount)
    // From the start of the window to the end of the drain.
    expect(results.perBackend[1]?.serverCpuSeconds).toBeCloseTo(0.5, 9)
    expect(server.cpuSeconds).toBeCloseTo(1, 9)
    expect(server.deliveriesPerCpuSecond).toBeCloseTo(results.deliveredCount, 6)
  })

  it("shows the broker's cost beside the servers', and what a delivery costs altogether", () => {
    const { broker, total, results } = simulate()
    expect(broker.cpuSeconds).toBe(0.25)
    expect(total.cpuSeconds).toBeCloseTo(1.25, 9)
    expect(total.deliveriesPerCpuSecond).toBeCloseTo(results.deliveredCount / 1.25, 6)
  })

  it('knows no total when the broker is not of the run, and the servers alone when the broker is in them', () => {
    const given = simulate(undefined, { brokerCpuSeconds: null })
    expect([given.broker.cpuSeconds, given.total.cpuSeconds, given.total.deliveriesPerCpuSecond]).toEqual([
      null,
      null,
      null,
    ])
    expect(clientsText(given)).not.toContain('Broker:')
    const mesh = simulate(undefined, { brokerCpuSeconds: null }, { ...CONFIG, broker: 'mesh' })
    expect(mesh.total.cpuSeconds).toBeCloseTo(1, 9)
    expect(mesh.total.deliveriesPerCpuSecond).toBe(mesh.server.deliveriesPerCpuSecond)
  })

  it('has a value for every metric that can be asserted', () => {
    expect(Object.entries(clientsMetrics(simulate())).filter(([, value]) => value === null)).toEqual([])
  })
})

describe('the report', () => {
  it('prints what the figures are', () => {
    const text = clientsText(simulate((deliveries) => deliveries.slice(0, -1)))
    for (const line of [
      /p99: 1\.50ms/,
      /Published: 200 msgs \(100 msg\/s\)/,
      /Fan-out ratio: \d\.\d\dx/,
      /Drain time: /,
    ]) {
      expect(text).toMatch(line)
    }
    expect(text).toMatch(/Loss: 0\.\d\d% \(1 msgs\)/)
    expect(text).toMatch(/Backend 1 \(port 8081\): \d+ msg\/s, 10 clients/)
    expect(text).toMatch(/Broker: CPU 0\.25 s \([\d,]+ deliveries per CPU second of servers and broker\)/)
    expect(text).not.toContain('Irregularities')
  })
})
