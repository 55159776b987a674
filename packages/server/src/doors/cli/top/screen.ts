import { inWords, paint, printable, type Terminal } from '../terminal.js'
import type { WatchFlags } from './flags.js'
import type { Snapshot } from './snapshot.js'

/** Columns of names; longer ones are cut. */
const NODE_CHARS = 24
const PATTERN_CHARS = 56
const BAR_CHARS = 20

type Node = Snapshot['nodes'][number]
type Style = Parameters<typeof paint>[1]

/**
 * A snapshot as text. Names of nodes and patterns come from others, so they are escaped.
 *
 * @param before Earlier snapshots, for what has changed.
 */
export function screenOf(
  snapshot: Snapshot,
  before: readonly Snapshot[],
  sort: WatchFlags['sort'],
  { stdout, env }: Terminal,
): string {
  const style = (text: string, ...styles: readonly Style[]) =>
    styles.reduce((styled, each) => paint(styled, each, stdout, env), text)
  const { missing, patterns, patternCount, node, output } = snapshot
  const nodes = sorted(snapshot.nodes, sort)
  const head = [
    `${nodes.length} ${nodes.length === 1 ? 'node' : 'nodes'}`,
    `${count(sum(nodes, (row) => row.connections))} connections`,
    `received ${count(sum(nodes, (row) => row.receivedPerSecond))}/s`,
    `sent ${count(sum(nodes, (row) => row.sentPerSecond))}/s`,
  ].join('   ')
  const rates = [...before, snapshot].map((look) => sum(look.nodes, (row) => row.sentPerSecond))
  const table = nodes.map((row) =>
    [
      name(row.node, NODE_CHARS),
      style(name(row.status, 9), row.status === 'ok' ? 'green' : 'red'),
      inWords(row.uptimeMs / 1000).padEnd(9),
      ...[row.connections, row.patterns, row.receivedPerSecond, row.sentPerSecond].map((value) => cell(count(value))),
      `  ${printable(row.broker)} ${style(printable(row.brokerStatus), row.brokerStatus === 'up' ? 'green' : 'red')}`,
    ].join(''),
  )
  const columns = ['connections', 'patterns', 'received/s', 'sent/s'].map(cell).join('')
  const most = Math.max(1, ...patterns.map(({ listeners }) => listeners))
  const isScreen = before.length > 0
  return [
    style(head, 'bold'),
    slowConsumers(output, before.at(-1)?.output, style),
    ...(isScreen ? [`sent/s ${style(sparkline(rates), 'cyan')}`] : []),
    '',
    style(`${'node'.padEnd(NODE_CHARS)}${'status'.padEnd(9)}${'uptime'.padEnd(9)}${columns}  broker`, 'dim'),
    ...table,
    ...missing.map((silent) => `${name(silent, NODE_CHARS)}${style('does not answer', 'red')}`),
    '',
    style(`busiest of ${count(patternCount)} patterns of node ${printable(node)}`, 'dim'),
    ...patterns.map(({ pattern, listeners }) => {
      const bar = isScreen ? `  ${style('▇'.repeat(Math.ceil((listeners / most) * BAR_CHARS)), 'cyan')}` : ''
      return `${name(pattern, PATTERN_CHARS)}${cell(count(listeners))} listeners${bar}`
    }),
    '',
  ].join('\n')
}

function sorted(nodes: readonly Node[], sort: WatchFlags['sort']): readonly Node[] {
  if (sort === 'name') return nodes.toSorted((a, b) => (a.node < b.node ? -1 : 1))
  const key = sort === 'received' || sort === 'sent' ? (`${sort}PerSecond` as const) : sort
  return nodes.toSorted((a, b) => b[key] - a[key])
}

/** Slow consumers are yellow once one was closed, and red when there are more than at the last look. */
function slowConsumers(
  output: Snapshot['output'],
  before: Snapshot['output'],
  style: (text: string, ...styles: readonly Style[]) => string,
): string {
  if (output === undefined) return 'slow consumers: unknown, as this machine may not read /metrics (--metrics)'
  const { slowConsumers: closed, waitingBytes } = output
  const added = before === undefined ? 0 : closed - before.slowConsumers
  const mib = (waitingBytes / 1024 ** 2).toFixed(1)
  const text = `slow consumers closed: ${count(closed)}${added > 0 ? ` (+${count(added)})` : ''}`
  return `${closed === 0 ? text : style(text, added > 0 ? 'red' : 'yellow')}   waiting output: ${mib} MiB`
}

const LEVELS = '▁▂▃▄▅▆▇█'

/** Values as bars from zero, with the largest of them. */
function sparkline(values: readonly number[]): string {
  const most = Math.max(...values)
  const levelOf = (value: number) => LEVELS[Math.round((most > 0 ? value / most : 0) * (LEVELS.length - 1))]
  return `${values.map(levelOf).join('')} most ${count(most)}`
}

function sum(nodes: readonly Node[], pick: (row: Node) => number): number {
  return nodes.reduce((total, row) => total + pick(row), 0)
}

function name(text: string, width: number): string {
  const shown = printable(text)
  return (shown.length >= width ? `${shown.slice(0, width - 2)}… ` : shown).padEnd(width)
}

function cell(text: string): string {
  return text.padStart(13)
}

function count(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}
