import { RunError } from '../../exit-codes.js'
import { findLoadgen } from '../../loadgen/find.js'
import { tableText } from '../../report/table-text.js'
import { column, VERDICT_COLUMN } from '../../results/columns.js'
import type { ResultColumn, ResultRow } from '../../results/result.js'
import type { ScenarioContext } from '../../scenario.js'
import {
  createRowScenario,
  measureInTurns,
  NOT_MEASURED,
  noteLines,
  type Rows,
  verdictLines,
} from '../../trials/row-scenario.js'
import type { NodesBroker } from './brokers.js'
import { lineOf } from './growth.js'
import { addNodesOptions, type NodesConfig, readNodesConfig } from './options.js'
import { measureNodes } from './run.js'

const us = (key: string, title: string): ResultColumn => ({ ...column(key, title, 'number', 'lower'), unit: 'us' })

const COSTS: readonly ResultColumn[] = [
  { ...column('restNodeMs', 'At rest: node, CPU ms/s', 'number', 'lower'), unit: 'ms/s' },
  { ...column('restBrokerMs', 'broker, ms/s for each', 'number', 'lower'), unit: 'ms/s' },
  column('restBytes', 'sent/s to each', 'bytes', 'lower'),
  column('joinBytes', 'A node joins: sent', 'bytes', 'lower'),
  us('patternNodeUs', 'A pattern: node, µs'),
  us('patternBrokerUs', 'broker, µs'),
  column('patternObjects', 'objects', 'number', 'lower'),
  us('loggedPublisherUs', 'A logged message: publisher, µs'),
  us('loggedNodeUs', 'each other node, µs'),
  us('loggedBrokerUs', 'broker, µs'),
  column('loggedBytes', 'sent', 'bytes', 'lower'),
  us('memberNodeUs', 'A member: each node, µs'),
  us('memberBrokerUs', 'broker, µs'),
  column('memberBytes', 'sent', 'bytes', 'lower'),
  us('questionNodesUs', 'A question: all nodes, µs'),
  us('questionBrokerUs', 'broker, µs'),
  column('questionBytes', 'sent', 'bytes', 'lower'),
  column('brokerConnections', 'Broker: connections', 'count', 'lower'),
  column('brokerObjects', 'objects', 'count', 'lower'),
  column('nodeRssBytes', 'Node RSS', 'bytes', 'lower'),
]
const IDENTITY_COLUMNS = [column('target', 'Target', 'text'), column('nodes', 'Nodes', 'count')]
const COLUMNS = [...IDENTITY_COLUMNS, ...COSTS, VERDICT_COLUMN]
const IDENTITY = IDENTITY_COLUMNS.map(({ key }) => key)

interface NodesCase {
  readonly kind: NodesBroker
  readonly nodes: number
}

/** What a fleet costs by its size: at rest, and for each pattern, logged message, member and question. */
export const nodesScenario = createRowScenario<NodesConfig>({
  name: 'nodes',
  summary: 'a fleet by its size: what nodes and broker pay at rest, per pattern, logged message, member and question',
  examples: [
    ['', '8, 16 and 32 nodes on every broker: half an hour'],
    ['--broker redis,nats --nodes 4,8 --json nodes.json', 'some of it'],
  ],
  columns: COLUMNS,
  identity: IDENTITY,
  addOptions: addNodesOptions,
  readConfig: readNodesConfig,
  targets: ({ brokers }) => brokers.map(targetOf),
  describe: (config) => ({ ...config }),
  heading: ({ brokers, nodes, duration, patterns, rate, members, questions }) =>
    [
      `  Brokers: ${brokers.join(', ')}; nodes: ${nodes.join(', ')}`,
      `  ${duration} s of rest and of ${rate} logged messages/s; at each node ${patterns} patterns and ${members} members; ${questions} questions`,
    ].join('\n'),
  measure,
  text: ({ rows, notes }, width) =>
    [
      tableText(COLUMNS, IDENTITY, rows, width),
      ...verdictLines(rows, ({ target, nodes }) => `${target}, ${String(nodes)} nodes`),
      ...growthLines(rows),
      ...noteLines(notes),
    ].join('\n'),
})

async function measure(config: NodesConfig, { progress, signal }: ScenarioContext): Promise<Rows> {
  const program = await findLoadgen(progress)
  const cases = config.brokers.flatMap((kind) => config.nodes.map((nodes): NodesCase => ({ kind, nodes })))
  const result = await measureInTurns<NodesCase>({
    cases,
    repeat: config.repeat,
    columns: COLUMNS,
    progress,
    signal,
    titleOf: ({ kind, nodes }) => `${kind}, ${nodes} nodes`,
    identityOf,
    measure: async (testCase, runProgress) => {
      const context = { program, progress: runProgress, signal }
      const figures = await measureNodes(testCase.kind, testCase.nodes, config, context)
      const verdict = { verdict: 'ok', verdictReason: null, repeatCount: 1, spread: {} } as const
      return { ...NOT_MEASURED, ...identityOf(testCase), ...figures, ...verdict }
    },
  })
  if (result.rows.length === 0) throw new RunError('nothing was measured')
  return {
    ...result,
    notes: [
      'CPU time is user and system time of all threads; what nodes and broker use at rest is taken off that of actions.',
      'Sent: bytes that the broker sends to all nodes together, at rest to each; a cluster also to its own servers. A member and a pattern are one at one node.',
      'Objects: subscriptions and consumers of NATS, channels and globs of Redis, queues, bindings and consumers of RabbitMQ.',
    ],
  }
}

function identityOf({ kind, nodes }: NodesCase) {
  return { target: targetOf(kind), mode: kind, subscribers: nodes, nodes }
}

function targetOf(kind: NodesBroker): string {
  return `webmq-native+${kind}`
}

/** What each figure grows by with one more node. */
function growthLines(rows: readonly ResultRow[]): string[] {
  const targets = [...new Set(rows.map(({ target }) => target))]
  const lines = targets.flatMap((target) => {
    const own = rows.filter((row) => row.target === target && row.verdict === 'ok')
    const grown = COSTS.flatMap(({ key, unit }) => {
      const line = lineOf(own, key)
      return line === null ? [] : [`${key} ${round(line.base)} + ${round(line.slope)} N ${unit}`.trimEnd()]
    })
    return grown.length === 0 ? [] : [`  ${target}: ${grown.join('; ')}`]
  })
  return lines.length === 0 ? [] : ['', 'By the number of nodes N, as a line:', ...lines]
}

function round(value: number): number {
  return Number(value.toPrecision(3))
}
