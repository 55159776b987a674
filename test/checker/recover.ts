import type { RunRecord } from '../../packages/check/src/judging/record.js'
import type { BrokerName, Route, Schedule, Step } from '../../packages/check/src/playing/schedule.js'
import { BROKERS } from './brokers.js'
import { playAlone } from './series.js'

interface Row {
  readonly fault: string
  /** From when on time counts: from the fault, or from its end. */
  readonly counts: 'from' | 'until'
  readonly step: Step
}

const HOLD = { atMs: 2_000, forMs: 2_000 }
const KILLED: Row = { fault: 'a node is killed', counts: 'from', step: { ...HOLD, what: 'kill-node', node: 0 } }
const OF_BROKER: readonly Row[] = [
  { fault: 'the broker is killed and back', counts: 'until', step: { ...HOLD, what: 'kill-broker', part: 0 } },
  { fault: 'the broker is restarted', counts: 'until', step: { ...HOLD, what: 'restart-broker', part: 0 } },
  { fault: 'the broker stands still, and goes on', counts: 'until', step: { ...HOLD, what: 'freeze-broker', part: 0 } },
]
const OF_LINK: Row = {
  fault: 'the link to the broker is cut, and back',
  counts: 'until',
  step: { ...HOLD, what: 'broker-link', link: 0, fault: 'cut' },
}
/** Everybody is at the node to which it happens. */
const ROUTE: Route = { nodes: [0], isSticky: true }

/**
 * Measures how long publishers and listeners feel each fault of a broker.
 * @returns rows of a table: median and maximum of `times` runs, in seconds.
 */
export async function measureRecovery(broker: BrokerName, times: number): Promise<string> {
  const { startService, nodeCount } = BROKERS[broker]
  const rows = [
    ...(nodeCount > 1 ? [KILLED] : []),
    ...(startService === undefined ? [] : OF_BROKER),
    ...(startService === undefined || broker === 'redis-cluster' ? [] : [OF_LINK]),
  ]
  const lines: string[] = []
  for (const row of rows) {
    const publish: number[] = []
    const listen: number[] = []
    for (let run = 0; run < times; run++) {
      const { record } = await playAlone(scheduleOf(broker, row, run))
      if (record === undefined) continue
      publish.push(publishAgainMs(record, row))
      listen.push(heardAgainMs(record, row))
    }
    lines.push(`| ${broker} | ${row.fault} | ${wordsOf(publish)} | ${wordsOf(listen)} |`)
  }
  return lines.join('\n')
}

function scheduleOf(broker: BrokerName, { fault, step }: Row, seed: number): Schedule {
  return {
    seed,
    broker,
    theme: fault,
    lengthMs: 8_000,
    logged: 'all',
    server: { historyMaxMessages: 10_000, brokerHeartbeatMs: 5_000 },
    publishers: [
      {
        ...ROUTE,
        keys: ['log.a.0'],
        burstCount: 1,
        everyMs: 10,
        payloadBytes: [60, 60],
        noechoShare: 0,
        twinShare: 0,
        againShare: 0,
      },
    ],
    listeners: [{ ...ROUTE, listens: [{ pattern: 'log.#', start: 'now' }] }],
    readers: [],
    steps: [step],
  }
}

/** From the fault to the first publish that is accepted. */
function publishAgainMs({ publishers, connections, faults }: RunRecord, { counts }: Row): number {
  const { fromMs = 0, untilMs = 0 } = faults[0] ?? {}
  const sinceMs = counts === 'from' ? fromMs : untilMs
  const times = publishers
    .flatMap(({ messages }) => messages.flatMap(({ attempts }) => attempts))
    .filter(({ outcome }) => outcome === 'ok')
    .filter(({ connection }) => counts === 'until' || connections[connection]?.node !== 'node-0')
    .map(({ settledAtMs = 0 }) => settledAtMs)
    .filter((atMs) => atMs >= sinceMs)
  return Math.min(...times) - sinceMs
}

/** From the fault to the first answer to a listen elsewhere, or to the first message. */
function heardAgainMs({ listeners, faults }: RunRecord, { counts }: Row): number {
  const { fromMs = 0, untilMs = 0 } = faults[0] ?? {}
  const sinceMs = counts === 'from' ? fromMs : untilMs
  const wanted = counts === 'from' ? 'ok' : 'message'
  const event = listeners[0]?.events.find(({ what, atMs }) => what === wanted && atMs >= sinceMs)
  return (event?.atMs ?? Number.POSITIVE_INFINITY) - sinceMs
}

function wordsOf(times: readonly number[]): string {
  const sorted = [...times].sort((first, second) => first - second)
  const seconds = (ms: number | undefined) => ((ms ?? Number.NaN) / 1_000).toFixed(2)
  return `${seconds(sorted[Math.floor(sorted.length / 2)])} (${seconds(sorted.at(-1))})`
}
