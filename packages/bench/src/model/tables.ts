import type { Assumptions } from './assumptions.js'
import type { CheckResult } from './check/check-run.js'
import type { BrokerCosts, Coefficients, NodeCosts } from './coefficients.js'
import { type Prediction, predict } from './predict.js'
import { MODEL_BROKERS, type ModelBroker, type Resource } from './size.js'
import { adviceOf, firstWall, RESOURCES } from './wall.js'
import type { Workload } from './workload.js'

/** A table of text, as in Markdown. */
export interface TextTable {
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

const NODE_ROWS: readonly (readonly [keyof NodeCosts, string, string])[] = [
  ['baseBytes', 'memory of a node without connections', 'B'],
  ['connectionBytes', 'memory of an idle connection, without the 3.8 kB of the kernel', 'B'],
  ['idleCores', 'a node that does nothing', 'cores'],
  ['keepaliveUs', 'a ping and its answer', 'us'],
  ['connectUs', 'a connect with a token', 'us'],
  ['publishUs', 'a publish in the process, with the wake-up of its event loop', 'us'],
  ['clientPublishUs', 'a publish of a client, with its answer', 'us'],
  ['writeUs', 'a write to a socket', 'us'],
  ['frameUs', 'a message in a write', 'us'],
  ['byteNs', 'a byte of its payload', 'ns'],
  ['frameBytes', 'bytes of a message on the wire beyond its payload', 'B'],
]

const BROKER_ROWS: readonly (readonly [keyof BrokerCosts, string, string])[] = [
  ['publisherUs', 'the node that publishes', 'us'],
  ['publisherLoggedUs', 'the same, logged', 'us'],
  ['listenerUs', 'each node with a listener', 'us'],
  ['listenerLoggedUs', 'each node that follows the log, with a listener or without', 'us'],
  ['brokerUs', 'the broker', 'us'],
  ['brokerCopyUs', 'the broker, for each node that gets it', 'us'],
  ['brokerLoggedUs', 'the broker, logged', 'us'],
  ['brokerLoggedCopyUs', 'the same, for each node that follows the log', 'us'],
  ['publishBytes', 'bytes to the broker beyond the payload', 'B'],
  ['publishLoggedBytes', 'the same, logged', 'B'],
  ['copyBytes', 'bytes to each node beyond the payload', 'B'],
  ['copyLoggedBytes', 'the same, logged', 'B'],
  ['hopP50Ms', 'publish to receipt on another node, p50', 'ms'],
  ['hopP99Ms', 'the same, p99', 'ms'],
]

/** What was measured, of a node. */
export function nodeTable({ node }: Coefficients): TextTable {
  return {
    head: ['Cost of', 'Measured'],
    rows: NODE_ROWS.map(([key, title, unit]) => [title, inUnit(node[key], unit)]),
  }
}

/** What was measured, of a message through each broker. */
export function brokerTable({ brokers }: Coefficients): TextTable {
  const kinds = knownBrokers({ brokers }).filter((kind) => kind !== 'memory')
  return {
    head: ['A message costs', ...kinds],
    rows: BROKER_ROWS.map(([key, title, unit]) => [
      title,
      ...kinds.map((kind) => inUnit(brokers[kind]?.[key] ?? 0, unit)),
    ]),
  }
}

/** How far the fitted costs are from the windows they were fitted to. */
export function residualTable({ residuals }: Coefficients): TextTable {
  return {
    head: ['Fit', 'Relative error'],
    rows: Object.entries(residuals).map(([name, value]) => [name, value === null ? '–' : percent(value)]),
  }
}

/** What a workload needs at each size on each broker. */
export function predictionTable(
  coefficients: Coefficients,
  workload: Workload,
  sizes: readonly number[],
  kinds: readonly ModelBroker[],
  assumptions: Assumptions,
): TextTable {
  const rows = sizes.flatMap((connections) =>
    kinds.map((kind): readonly string[] => {
      const found = predict({ coefficients, kind, workload, connections, assumptions })
      const head = [short(connections), kind]
      return typeof found === 'string' ? [...head, ...lacking(found)] : [...head, ...cells(found)]
    }),
  )
  return {
    head: [
      'Connections',
      'Broker',
      'Brokers',
      'Nodes',
      'Cores, busy',
      'Memory',
      'Deliveries/s',
      'To clients',
      'Through brokers in / out per s',
      'Out of brokers',
      'Busiest broker',
      'p50 / p99 ms',
      'Price per hour',
    ],
    rows,
  }
}

function lacking(resource: Resource): string[] {
  return [`does not fit: ${RESOURCES[resource]}`, ...new Array<string>(10).fill('–')]
}

function cells({ size, nodes, cores, busyCores, memoryBytes, traffic, ...rest }: Prediction): string[] {
  const { broker } = size
  const { outBytesPerSecond, brokerOutBytesPerSecond, latency, pricePerHour } = rest
  return [
    broker === undefined ? '–' : short(size.brokers),
    short(nodes),
    `${short(cores)}, ${short(busyCores)}`,
    `${short(memoryBytes)}B`,
    short(traffic.deliveriesPerSecond),
    `${short(outBytesPerSecond * 8)}bit/s`,
    broker === undefined
      ? '–'
      : `${short(broker.inPerSecond * size.brokers)} / ${short(broker.outPerSecond * size.brokers)}`,
    broker === undefined ? '–' : `${short(brokerOutBytesPerSecond * 8)}bit/s`,
    broker === undefined ? '–' : `${broker.cores.toFixed(2)} cores`,
    `${short(latency.p50Ms)} / ${short(latency.p99Ms)}`,
    pricePerHour.toFixed(2),
  ]
}

/** Where each broker ends. */
export function wallTable(
  coefficients: Coefficients,
  workloads: readonly Workload[],
  kinds: readonly ModelBroker[],
  assumptions: Assumptions,
): TextTable {
  return {
    head: ['Workload', 'Broker', 'First wall at connections', 'What runs out', 'What to do there'],
    rows: workloads.flatMap((workload) =>
      kinds.map((kind) => {
        const { connections, resource } = firstWall({ coefficients, kind, workload, assumptions })
        return resource === null
          ? [workload.name, kind, 'none', '–', '–']
          : [workload.name, kind, short(connections), RESOURCES[resource], adviceOf(resource, kind)]
      }),
    ),
  }
}

/** Predicted beside measured. */
export function checkTable(results: readonly CheckResult[]): TextTable {
  return {
    head: ['Run', 'Figure', 'Predicted', 'Measured', 'Error'],
    rows: results.flatMap(({ label, figures }) =>
      figures.map(({ figure, predicted, measured, error }) => [
        label,
        figure,
        short(predicted),
        short(measured),
        `${error > 0 ? '+' : ''}${percent(error)}`,
      ]),
    ),
  }
}

/** The table in Markdown. */
export function markdown({ head, rows }: TextTable): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

/** Brokers with coefficients, and the one without need of any. */
export function knownBrokers({ brokers }: Pick<Coefficients, 'brokers'>): ModelBroker[] {
  return MODEL_BROKERS.filter((kind) => kind === 'memory' || brokers[kind] !== undefined)
}

function inUnit(value: number, unit: string): string {
  if (unit === 'B') return `${short(value)}B`
  return `${short(value)} ${unit === 'us' ? 'µs' : unit}`
}

/** Three significant digits with k, M, G, T. */
export function short(value: number): string {
  const size = Math.abs(value)
  const steps = [
    [999.5e9, 1e12, 'T'],
    [999.5e6, 1e9, 'G'],
    [999.5e3, 1e6, 'M'],
    [999.5, 1e3, 'k'],
  ] as const
  const [, divisor = 1, suffix = ''] = steps.find(([least]) => size >= least) ?? []
  return `${Number((value / divisor).toPrecision(3))}${suffix}`
}

function percent(share: number): string {
  return `${Number((share * 100).toPrecision(2))} %`
}
