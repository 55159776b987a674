import { UsageError } from '../../exit-codes.js'
import { cellOf, type ResultRecord, type ResultRow } from '../../results/result.js'
import { MODEL_BROKERS, type ModelBroker } from '../size.js'

/** One measured run, in the terms of the model. */
export interface CheckCase {
  readonly label: string
  readonly kind: ModelBroker
  readonly connections: number
  readonly nodes: number
  readonly seconds: number
  /** Messages, over all keys. */
  readonly published: number
  /** `node`: in the process of the only node. `relay`: in the process of another node. `client`: by connections. `outside`: by a node whose CPU is not counted. */
  readonly publishedBy: 'node' | 'relay' | 'client' | 'outside'
  readonly listenersPerKey: number
  readonly payloadBytes: number
  readonly isLogged: boolean
  /** Latencies are from publishes at a rate, with one reader on the same cores. */
  readonly isPaced: boolean
  readonly measured: {
    readonly serverCpuSeconds: number | null
    readonly brokerCpuSeconds: number | null
    readonly deliveries: number | null
    readonly p99Ms: number | null
  }
}

type Reader = (record: ResultRecord, row: ResultRow) => CheckCase | undefined

/** By scenario: how a row is one case; absent rows cannot be predicted. */
const READERS: Readonly<Record<string, Reader>> = { paced, fanout, clients, auction, fleet }

/**
 * The cases of a result.
 * @throws {UsageError} for a scenario that the model does not know, or a result without a row that it can predict.
 */
export function casesOf(record: ResultRecord): CheckCase[] {
  const read = Object.hasOwn(READERS, record.scenario) ? READERS[record.scenario] : undefined
  if (read === undefined) {
    throw new UsageError(
      `a result of '${record.scenario}' cannot be checked; those of ${Object.keys(READERS).join(', ')} can`,
    )
  }
  const cases = record.rows
    .filter(({ verdict, target }) => verdict !== 'failed' && target.startsWith('webmq-native'))
    .map((row) => read(record, row))
    .filter((one) => one !== undefined)
  if (cases.length === 0) throw new UsageError('the result has no row of webmq-native that the model can predict')
  return cases
}

function paced({ config }: ResultRecord, row: ResultRow): CheckCase {
  const rate = numberOf(row, 'ratePerSecond')
  const seconds = Number(config.duration)
  return {
    label: `${row.subscribers} connections, ${rate}/s`,
    kind: 'memory',
    connections: row.subscribers,
    nodes: 1,
    seconds,
    published: Math.round(rate * seconds),
    publishedBy: 'node',
    listenersPerKey: row.subscribers,
    payloadBytes: Number(config.payload),
    isLogged: true,
    isPaced: true,
    measured: measuredOf(row, seconds),
  }
}

/** A flood: its rate is taken from the run, its cost is predicted. */
function fanout({ config }: ResultRecord, row: ResultRow): CheckCase | undefined {
  const kind = MODEL_BROKERS.find((known) => known === row.mode)
  if (kind === undefined) return undefined
  const seconds = Number(config.duration)
  return {
    label: `flood to ${row.subscribers}, ${row.mode}`,
    kind,
    connections: row.subscribers,
    nodes: 1,
    seconds,
    published: numberOf(row, 'publishedPerSecond') * seconds,
    publishedBy: kind === 'memory' ? 'node' : 'relay',
    listenersPerKey: row.subscribers,
    payloadBytes: Number(config.payload),
    isLogged: kind === 'memory',
    isPaced: false,
    measured: measuredOf(row, seconds),
  }
}

function clients({ config }: ResultRecord, row: ResultRow): CheckCase | undefined {
  const kind = brokerOf(row)
  if (kind === undefined) return undefined
  const seconds = Number(config.duration)
  const keys = numberOf(row, 'keyPoolSize')
  return {
    label: `${row.subscribers} clients x ${numberOf(row, 'backends')}, ${kind}`,
    kind,
    connections: row.subscribers,
    nodes: numberOf(row, 'backends'),
    seconds,
    published: row.subscribers * numberOf(row, 'publishRate') * seconds,
    publishedBy: 'client',
    listenersPerKey: (row.subscribers * numberOf(row, 'listens')) / keys,
    payloadBytes: numberOf(row, 'messageSize'),
    isLogged: kind === 'memory',
    isPaced: false,
    measured: measuredOf(row, seconds),
  }
}

function auction({ config }: ResultRecord, row: ResultRow): CheckCase | undefined {
  const kind = brokerOf(row)
  const isPlain = config.hasTls !== true && config.hasCompression !== true && config.isMigrating !== true
  if (kind === undefined || !isPlain) return undefined
  const items = Number(config.items)
  const published = Number(config.bids) * items
  const perSecond = numberOf(row, 'publishedPerSecond')
  const seconds = perSecond > 0 ? published / perSecond : 0
  const deliveries = (row.deliveriesPerSecond ?? 0) * seconds
  return {
    label: `${row.subscribers} connections x ${numberOf(row, 'nodes')}, ${kind}`,
    kind,
    connections: row.subscribers,
    nodes: numberOf(row, 'nodes'),
    seconds,
    published,
    publishedBy: 'outside',
    listenersPerKey: row.subscribers / items,
    payloadBytes: deliveries > 0 ? ((row.bytesPerSecond ?? 0) * seconds) / deliveries : 0,
    isLogged: false,
    isPaced: items === 1,
    measured: measuredOf(row, seconds),
  }
}

/** Before the first fault. */
function fleet({ config }: ResultRecord, row: ResultRow): CheckCase | undefined {
  const kind = brokerOf(row)
  if (kind === undefined || row.fault !== 'none') return undefined
  const perSecond = numberOf(row, 'publishedPerSecond')
  const published = numberOf(row, 'publishedCount')
  const seconds = perSecond > 0 ? published / perSecond : 0
  return {
    label: `${row.subscribers} users x ${Number(config.backends)}, ${kind}`,
    kind,
    connections: row.subscribers + Number(config.publishers),
    nodes: Number(config.backends),
    seconds,
    published,
    publishedBy: 'client',
    listenersPerKey: row.subscribers / Number(config.rooms),
    payloadBytes: Number(config.messageSize),
    isLogged: true,
    isPaced: false,
    measured: measuredOf(row, seconds),
  }
}

function measuredOf(row: ResultRow, seconds: number): CheckCase['measured'] {
  const brokerCpuSeconds = cellOf(row, 'brokerCpuSeconds')
  return {
    serverCpuSeconds: row.serverCpuSeconds,
    brokerCpuSeconds: typeof brokerCpuSeconds === 'number' ? brokerCpuSeconds : null,
    deliveries: row.deliveriesPerSecond === null ? null : row.deliveriesPerSecond * seconds,
    p99Ms: row.latencyMs?.p99 ?? null,
  }
}

/** `webmq-native` is memory, `webmq-native+redis` is Redis. */
function brokerOf({ target }: ResultRow): ModelBroker | undefined {
  const [, name = 'memory'] = target.split('+')
  return MODEL_BROKERS.find((kind) => kind === name)
}

function numberOf(row: ResultRow, key: string): number {
  const value = cellOf(row, key)
  return typeof value === 'number' ? value : 0
}
