import { inWords } from '../in-words.js'
import { printable } from '../printable.js'
import type { Snapshot } from './snapshot.js'

/** Columns of names; longer ones are cut. */
const NODE_CHARS = 24
const PATTERN_CHARS = 56

/** A snapshot as text. Names of nodes and patterns come from others, so they are escaped. */
export function screenOf(snapshot: Snapshot, previous: Snapshot | undefined): string {
  const { nodes, patterns, patternCount, node, output } = snapshot
  const total = (pick: (row: (typeof nodes)[number]) => number) => count(nodes.reduce((sum, row) => sum + pick(row), 0))
  const head = [
    `${nodes.length} ${nodes.length === 1 ? 'node' : 'nodes'}`,
    `${total((row) => row.connections)} connections`,
    `received ${total((row) => row.receivedPerSecond)}/s`,
    `sent ${total((row) => row.sentPerSecond)}/s`,
  ].join('   ')
  const table = nodes.map((row) =>
    [
      name(row.node, NODE_CHARS),
      name(row.status, 9),
      inWords(row.uptimeMs / 1000).padEnd(9),
      ...[row.connections, row.patterns, row.receivedPerSecond, row.sentPerSecond].map((value) => cell(count(value))),
      `  ${printable(row.broker)} ${printable(row.brokerStatus)}`,
    ].join(''),
  )
  const columns = ['connections', 'patterns', 'received/s', 'sent/s'].map(cell).join('')
  return [
    head,
    describeOutput(output, previous?.output),
    '',
    `${'node'.padEnd(NODE_CHARS)}${'status'.padEnd(9)}${'uptime'.padEnd(9)}${columns}  broker`,
    ...table,
    '',
    `busiest of ${count(patternCount)} patterns of node ${printable(node)}`,
    ...patterns.map(({ pattern, listeners }) => `${name(pattern, PATTERN_CHARS)}${cell(count(listeners))} listeners`),
    '',
  ].join('\n')
}

function describeOutput(output: Snapshot['output'], before: Snapshot['output']): string {
  if (output === undefined) return 'slow consumers: unknown, as this machine may not read /metrics (--metrics)'
  const { slowConsumers, waitingBytes } = output
  const added = before === undefined ? 0 : slowConsumers - before.slowConsumers
  const mib = (waitingBytes / 1024 ** 2).toFixed(1)
  return `slow consumers closed: ${count(slowConsumers)}${added > 0 ? ` (+${count(added)})` : ''}   waiting output: ${mib} MiB`
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
