import { setTimeout as wait } from 'node:timers/promises'
import { Interrupt } from '../client/interrupt.js'
import { EXIT } from '../exit-codes.js'
import { inWords, printable, type Terminal } from '../terminal.js'
import { type ApiSource, lookAt, type Snapshot } from './snapshot.js'

export interface WatchFlags {
  readonly interval: number
  readonly patterns: number
  readonly once?: true
  readonly json?: true
}

/** Moves to the top left corner, and clears what is below: without the flicker of a cleared screen. */
const HOME = '\u001b[H'
const CLEAR_LINE_END = '\u001b[K'
const CLEAR_BELOW = '\u001b[J'

/**
 * Shows a server until a signal, or once.
 *
 * @returns The exit code.
 * @throws {WebMQError} The server cannot be reached, or refuses.
 */
export async function watch(
  source: ApiSource,
  { interval, patterns, once, json }: WatchFlags,
  terminal: Terminal,
): Promise<number> {
  const { stdout } = terminal
  using interrupt = new Interrupt(stdout)
  const { signal } = interrupt
  const isScreen = stdout.isTTY === true && !json && !once
  const isRepeated = isScreen || (json === true && !once)
  let previous: Snapshot | undefined
  do {
    const snapshot = await lookAt(source, patterns)
    if (signal.aborted) break
    if (json) stdout.write(`${JSON.stringify(snapshot)}\n`)
    else {
      const text = screenOf(snapshot, previous)
      stdout.write(isScreen ? HOME + text.replaceAll('\n', `${CLEAR_LINE_END}\n`) + CLEAR_BELOW : text)
    }
    previous = snapshot
    if (isRepeated) await wait(interval, undefined, { signal }).catch(() => undefined)
  } while (isRepeated && !signal.aborted)
  return EXIT.OK
}

/** Columns of names; longer ones are cut. */
const NODE_CHARS = 24
const PATTERN_CHARS = 56

/** A snapshot as text. Names of nodes and patterns come from others, so they are escaped. */
function screenOf(snapshot: Snapshot, previous: Snapshot | undefined): string {
  const { nodes, missing, patterns, patternCount, node, output } = snapshot
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
    ...missing.map((silent) => `${name(silent, NODE_CHARS)}does not answer`),
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
