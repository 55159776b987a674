import { type Command, Option, type OptionValues } from 'commander'
import { BROKER_KINDS, type BrokerKind } from '../../brokers/broker-choice.js'
import { UsageError } from '../../exit-codes.js'
import { hostileCases } from '../../hostile/cases/index.js'
import { positiveInteger, positiveNumber } from '../../options.js'
import { checkTickSize, names, type TrialConfig } from '../../trials/trial-options.js'

/** Settings of the scenario. */
export interface HostileConfig extends TrialConfig {
  readonly cases: readonly string[]
  /** Hostile clients. */
  readonly hostile: number
  /** Seconds of the honest load alone. */
  readonly baseline: number
  /** Honest messages per second, over all publishers. */
  readonly rate: number
  readonly listeners: number
  readonly publishers: number
  readonly pingers: number
  /** Most that one hostile client sends per second. */
  readonly operations: number
  readonly bytes: number
  /** Started and ended by the run. */
  readonly broker: BrokerKind
}

const DEFAULT_CONNECTIONS = 1_000
const HOSTILE_SHARE = 0.01
const MAX_PUBLISHERS = 5
const MAX_PINGERS = 50
/** Of the honest connections. */
const ASKING_SHARE = 0.1
const MIN_CONNECTIONS = 10

export function addHostileOptions(command: Command): void {
  command
    .option('--case <names>', 'cases of the catalogue; default: all', names)
    .option('--connections <n>', 'connections, the hostile clients included', positiveInteger, DEFAULT_CONNECTIONS)
    .option('--hostile <n>', 'hostile clients (default: 1 % of the connections)', positiveInteger)
    .option('--baseline <s>', 'seconds of the honest load before the attack', positiveNumber, 3)
    .option('--rate <n>', 'honest messages per second, each to all listeners', positiveNumber, 100)
    .option(
      '--operations <n>',
      'most messages, frames or requests per second of one hostile client',
      positiveInteger,
      2_000,
    )
    .option('--bytes <n>', 'most bytes per second of one hostile client', positiveInteger, 2_000_000)
    .addOption(
      new Option('--broker <name>', 'broker of the server, started and ended by the run')
        .choices(BROKER_KINDS)
        .default('memory'),
    )
    .addHelpText(
      'after',
      `\nCases:\n${hostileCases.map(({ name, does }) => `  ${name.padEnd(24)} ${does}`).join('\n')}`,
    )
}

/** @throws {UsageError} for cases that there are not, and for too few connections. */
export function readHostileConfig(common: TrialConfig, values: OptionValues): HostileConfig {
  checkTickSize(common)
  const { connections, baseline, rate, operations, bytes, broker } = values as {
    readonly connections: number
    readonly baseline: number
    readonly rate: number
    readonly operations: number
    readonly bytes: number
    readonly broker: BrokerKind
  }
  const hostile = (values.hostile as number | undefined) ?? Math.ceil(connections * HOSTILE_SHARE)
  const honest = connections - hostile
  if (honest < MIN_CONNECTIONS) {
    throw new UsageError(
      `--connections ${connections}, ${hostile} of them hostile, leaves fewer than ${MIN_CONNECTIONS} honest ones`,
    )
  }
  const publishers = Math.min(MAX_PUBLISHERS, Math.floor(honest * ASKING_SHARE))
  const pingers = Math.min(MAX_PINGERS, Math.floor(honest * ASKING_SHARE))
  const cases = (values.case as string[] | undefined) ?? hostileCases.map(({ name }) => name)
  for (const name of cases) {
    if (!hostileCases.some((known) => known.name === name)) {
      throw new UsageError(
        `there is no case '${name}'; there are ${hostileCases.map((known) => known.name).join(', ')}`,
      )
    }
  }
  const listeners = honest - publishers - pingers
  const load = { listeners, publishers, pingers, rate, baseline }
  return { ...common, tiers: [connections], cases, hostile, ...load, operations, bytes, broker }
}
