import type { Command, OptionValues } from 'commander'
import { UsageError } from '../../exit-codes.js'
import { listOf, positiveInteger, positiveNumber } from '../../options.js'
import { counts } from '../../trials/trial-options.js'
import { NODES_BROKERS, type NodesBroker } from './brokers.js'

/** Settings of the scenario. */
export interface NodesConfig {
  readonly brokers: readonly NodesBroker[]
  /** Node processes, one condition each. */
  readonly nodes: readonly number[]
  /** Seconds of rest, and of logged messages. */
  readonly duration: number
  /** Patterns that a client listens to at each node. */
  readonly patterns: number
  /** Logged messages per second. */
  readonly rate: number
  /** Presence members at each node, who come one after the other. */
  readonly members: number
  /** Of operators, to all nodes. */
  readonly questions: number
  readonly repeat: number
}

/** As many listens as a connection may have. */
const MAX_PATTERNS = 128
/** As many keys as a connection may enter. */
const MAX_KEYS = 128

export function addNodesOptions(command: Command): void {
  command
    .option('--broker <list>', `brokers in turn: ${NODES_BROKERS.join(', ')}`, listOf(NODES_BROKERS), [
      ...NODES_BROKERS,
    ])
    .option('--nodes <list>', 'node processes, one condition each', counts, [8, 16, 32])
    .option('--duration <s>', 'seconds of rest, and of logged messages', positiveNumber, 10)
    .option('--patterns <n>', 'patterns that a client listens to at each node', positiveInteger, 50)
    .option('--rate <n>', 'logged messages per second', positiveInteger, 200)
    .option('--members <n>', 'presence members at each node, one after the other', positiveInteger, 20)
    .option('--questions <n>', 'questions of an operator to all nodes', positiveInteger, 10)
    .option('--repeat <n>', 'measurements of each; the table shows medians', positiveInteger, 1)
}

/** @throws {UsageError} for settings that cannot be run. */
export function readNodesConfig({ broker, ...values }: OptionValues): NodesConfig {
  const config = { ...values, brokers: broker } as unknown as NodesConfig
  if (config.nodes.some((count) => count < 2)) throw new UsageError('--nodes are 2 or more: one shares nothing')
  if (config.patterns > MAX_PATTERNS) throw new UsageError(`--patterns are at most ${MAX_PATTERNS}`)
  if (config.members >= MAX_KEYS) throw new UsageError(`--members are less than ${MAX_KEYS}`)
  const { brokers, nodes, duration, patterns, rate, members, questions, repeat } = config
  return { brokers, nodes, duration, patterns, rate, members, questions, repeat }
}
