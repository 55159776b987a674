import { type Command, InvalidArgumentError, Option, type OptionValues } from 'commander'
import type { BrokerKind } from '../../brokers/broker-choice.js'
import { UsageError } from '../../exit-codes.js'
import type { VirtualUsersStage } from '../../loadgen/plans.js'
import { positiveInteger, positiveNumber, type ServerOptions, seedNumber, TRANSPORTS } from '../../options.js'

/** Brokers that keep the history; `none` is the base line without. */
export const HISTORY_BROKERS = ['none', 'memory', 'redis', 'nats', 'rabbitmq', 'mesh'] as const

export type HistoryBroker = (typeof HISTORY_BROKERS)[number]

export interface HistoryCase {
  readonly broker: HistoryBroker
  /** Several are behind a load balancer. */
  readonly backends: number
}

export interface HistoryLoad {
  /** At the height of the run. */
  readonly users: number
  /** Seconds of the whole ramp; then the last iterations end. */
  readonly duration: number
  /** AnyCable's N: users play two more rounds. */
  readonly rounds: number
  readonly channels: number
  /** Of the users, 0 to 1. */
  readonly sendersRatio: number
  /** Of the rounds in which a sender sends, 0 to 1, in steps of a tenth. */
  readonly sendingRate: number
}

export interface HistoryConfig extends HistoryLoad {
  readonly cases: readonly HistoryCase[]
  readonly repeat: number
  readonly transport: ServerOptions['transport']
  readonly seed: number
}

/** AnyCable's own load, and one of about a minute in which users come and go often. */
const PRESETS = {
  seed: { users: 1_500, duration: 110, rounds: 20 },
  minute: { users: 1_500, duration: 44, rounds: 4 },
} as const satisfies Record<string, Pick<HistoryLoad, 'users' | 'duration' | 'rounds'>>

/** AnyCable's stages: seconds, and the share of all users at the end. */
const STAGES = [
  [10, 300 / 1_500],
  [10, 500 / 1_500],
  [10, 1_000 / 1_500],
  [10, 1_300 / 1_500],
  [10, 1],
  [30, 1],
  [30, 0],
] as const
const START_SHARE = 100 / 1_500
const SEED_DURATION_S = STAGES.reduce((sum, [seconds]) => sum + seconds, 0)

/** Whether the broker can connect this many backends. */
function isPossible({ broker, backends }: HistoryCase): boolean {
  return broker === 'memory' ? backends === 1 : broker !== 'mesh' || backends > 1
}

/** Lines of `--all`: every broker on one node and on three, where possible. */
const ALL_CASES = [1, 3].flatMap((backends) =>
  HISTORY_BROKERS.map((broker) => ({ broker, backends })).filter(isPossible),
)

export function addHistoryOptions(command: Command): void {
  const presets = Object.keys(PRESETS)
  command
    .addOption(
      new Option('--broker <name>', 'broker that keeps the history; none: the base line without')
        .choices([...HISTORY_BROKERS])
        .default('memory'),
    )
    .option('--backends <n>', 'server processes; several are behind HAProxy', positiveInteger, 1)
    .option('--all', 'every broker, on 1 and on 3 backends, as one table')
    .option('--cases <list>', 'only these rows of the table, such as memory1,redis3', cases)
    .option('--repeat <n>', 'runs of each; the table shows medians', positiveInteger, 1)
    .addOption(new Option('--preset <name>', 'users, duration and rounds at once').choices(presets).default('seed'))
    .option('--users <n>', `virtual users at the height (default: ${defaults('users')})`, positiveInteger)
    .option('--duration <s>', `seconds of the whole ramp (default: ${defaults('duration')})`, positiveNumber)
    .option('--rounds <n>', `N: rounds of an iteration, less two (default: ${defaults('rounds')})`, positiveInteger)
    .option('--channels <n>', 'number of keys for the users', positiveInteger, 5)
    .option('--senders-ratio <share>', 'users that send', share, 0.3)
    .option('--sending-rate <share>', 'rounds in which a sender sends', share, 0.3)
    .option('--seed <n>', 'decides pauses and dice', seedNumber, 1)
    .addOption(new Option('--transport <name>', 'of the backends').choices(TRANSPORTS).default('native'))
}

type Given = Omit<HistoryConfig, 'cases' | 'users' | 'duration' | 'rounds'> & {
  readonly broker: HistoryBroker
  readonly backends: number
  readonly all?: boolean
  readonly cases?: readonly HistoryCase[]
  readonly preset: keyof typeof PRESETS
  readonly users?: number
  readonly duration?: number
  readonly rounds?: number
}

/**
 * The settings with every default filled in.
 * @throws {UsageError} for settings that cannot be run.
 */
export function readHistoryConfig(values: OptionValues): HistoryConfig {
  const { broker, backends, all, cases: given, preset, users, duration, rounds, ...rest } = values as Given
  const { repeat, channels, sendersRatio, sendingRate, transport, seed } = rest
  const chosen = given ?? (all === true ? ALL_CASES : [{ broker, backends }])
  for (const one of chosen) {
    if (isPossible(one)) continue
    throw new UsageError(
      one.broker === 'memory'
        ? `--broker memory is embedded in each backend and connects none of them: it cannot run --backends ${one.backends}`
        : '--broker mesh connects backends with each other: give --backends 2 or more',
    )
  }
  return {
    cases: chosen,
    repeat,
    users: users ?? PRESETS[preset].users,
    duration: duration ?? PRESETS[preset].duration,
    rounds: rounds ?? PRESETS[preset].rounds,
    channels,
    sendersRatio,
    sendingRate,
    transport,
    seed,
  }
}

/** The ramp of a load, and the stage in which all users are there. */
export function stagesOf({ users, duration }: HistoryLoad) {
  const scale = duration / SEED_DURATION_S
  const stages = STAGES.map(
    ([seconds, part]): VirtualUsersStage => ({
      durationMs: Math.max(1, Math.round(seconds * scale * 1_000)),
      users: Math.round(users * part),
    }),
  )
  const full = STAGES.findIndex(([, part], index) => part === 1 && STAGES[index - 1]?.[1] === 1)
  return {
    startUsers: Math.max(1, Math.round(users * START_SHARE)),
    stages,
    fullFromMs: stages.slice(0, full).reduce((sum, { durationMs }) => sum + durationMs, 0),
    fullMs: stages[full]?.durationMs ?? 0,
  }
}

/** The broker that carries the messages; for `none` on several backends, Redis without history. */
export function carrierOf({ broker, backends }: HistoryCase): BrokerKind {
  if (broker !== 'none') return broker
  return backends === 1 ? 'memory' : 'redis'
}

/** Mean duration of one iteration, from the means of AnyCable's pauses. */
export function iterationSeconds({ rounds }: HistoryLoad): number {
  return 1.2 + (rounds + 2) * 1.825 + 0.75
}

function defaults(name: keyof (typeof PRESETS)['seed']): string {
  return Object.entries(PRESETS)
    .map(([preset, settings]) => `${settings[name]} of ${preset}`)
    .join(', ')
}

/** Reads `memory1,redis3`. */
function cases(text: string): HistoryCase[] {
  return text.split(',').map((part) => {
    const [, name, count] = /^([a-z]+?)(\d+)$/.exec(part.trim()) ?? []
    const broker = HISTORY_BROKERS.find((known) => known === name)
    if (broker === undefined || count === undefined) {
      throw new InvalidArgumentError(
        `It must be a list of broker and backends, such as memory1,redis3; brokers are ${HISTORY_BROKERS.join(', ')}.`,
      )
    }
    return { broker, backends: positiveInteger(count) }
  })
}

/** Reads a number above 0, at most 1. */
function share(text: string): number {
  const number = positiveNumber(text)
  if (number > 1) throw new InvalidArgumentError('It must be above 0 and at most 1.')
  return number
}
