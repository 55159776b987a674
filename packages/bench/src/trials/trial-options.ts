import type { Command, OptionValues } from 'commander'
import { InvalidArgumentError } from 'commander'
import { UsageError } from '../exit-codes.js'
import { MIN_ORDER_BYTES } from '../load/order-message.js'
import { nonNegativeNumber, positiveInteger, positiveNumber } from '../options.js'
import { parseTarget, type TargetAbility, type TargetChoice, targetSpecs } from '../targets/target-table.js'

/** Settings that scenarios of targets and tiers share; unused ones are 0. */
export interface TrialConfig {
  readonly targets: readonly TargetChoice[]
  /** Connections, one condition each. */
  readonly tiers: readonly number[]
  readonly repeat: number
  /** Seconds of each measurement. */
  readonly duration: number
  /** Seconds of the same load before, not counted. */
  readonly warmup: number
  /** Bytes. */
  readonly payload: number
  readonly generatorThreads: number
  /** Every target serves TLS only. */
  readonly tls?: true
}

/** Defaults of a scenario; an absent one removes its flag, and without tiers the scenario's own config has them. */
export interface TrialDefaults {
  readonly targets: readonly string[]
  readonly tiers?: readonly number[]
  /** Absent: 3. */
  readonly repeat?: number
  readonly duration?: number
  readonly warmup?: number
  readonly payload?: number
  /** Adds `--tls`. */
  readonly hasTls?: true
}

const DEFAULT_REPEAT = 3
/** A tick holds its number and its time. */
const MIN_TICK_BYTES = 96
/** Largest payload that a server accepts by default. */
const MAX_PAYLOAD_BYTES = 256 * 1_024

export function addTargetOption(command: Command, defaults: TrialDefaults, abilities: readonly TargetAbility[]): void {
  const able = targetsWith(abilities).join(', ')
  command.option('--target <names>', `what to measure, interleaved: ${able}`, names, defaults.targets)
}

/** Adds the other flags of {@link TrialConfig}. @param tiersHelp What tiers are. */
export function addTrialOptions(
  command: Command,
  defaults: TrialDefaults,
  tiersHelp = 'connections, one condition each',
): void {
  command
    .option(
      '--repeat <n>',
      'measurements of each; the table shows medians',
      positiveInteger,
      defaults.repeat ?? DEFAULT_REPEAT,
    )
    .option('--generator-threads <n>', 'I/O threads of the load generator', positiveInteger, 1)
  const { tiers, duration, warmup, payload } = defaults
  if (defaults.hasTls === true) command.option('--tls', 'wss:// with a certificate of the run, checked by nobody')
  if (tiers !== undefined) command.option('--tiers <counts>', tiersHelp, counts, tiers)
  if (duration !== undefined) command.option('--duration <s>', 'seconds of each measurement', positiveNumber, duration)
  if (warmup !== undefined) {
    command.option('--warmup <s>', 'seconds of the same load before, not counted', nonNegativeNumber, warmup)
  }
  if (payload !== undefined) command.option('--payload <bytes>', 'bytes of each payload', positiveInteger, payload)
}

/**
 * The common settings, checked.
 * @throws {UsageError} for targets that are unknown or lack an ability that the scenario needs.
 */
export function readTrialConfig(
  values: OptionValues,
  basicAbilities: readonly TargetAbility[],
  defaults: TrialDefaults,
  subject?: TargetChoice,
): TrialConfig {
  const given = values as Omit<TrialConfig, 'targets'> & { readonly target: readonly string[] }
  const abilities: readonly TargetAbility[] = given.tls === true ? [...basicAbilities, 'tls'] : basicAbilities
  const chosen = subject === undefined ? given.target.map(parseTarget) : [subject]
  // Nobody has asked for the defaults by name: --tls leaves out those that have none.
  const isDefault = given.target === defaults.targets
  const targets = chosen.filter(({ spec }) => !isDefault || given.tls !== true || spec.abilities.includes('tls'))
  for (const { label, spec } of targets) {
    const missing = abilities.filter((ability) => !spec.abilities.includes(ability))
    if (missing.length > 0) {
      throw new UsageError(
        `target '${label}' has no ${missing.join(', ')}; targets that can: ${targetsWith(abilities).join(', ')}`,
      )
    }
  }
  const labels = targets.map(({ label }) => label)
  const doubled = labels.find((label, index) => labels.indexOf(label) !== index)
  if (doubled !== undefined) throw new UsageError(`--target names '${doubled}' twice`)
  const { tiers = [], repeat, duration = 0, warmup = 0, payload = 0, generatorThreads, tls } = given
  const config = { targets, tiers, repeat, duration, warmup, payload, generatorThreads }
  return tls === true ? { ...config, tls } : config
}

/**
 * For scenarios that publish ticks.
 * @throws {UsageError} when a payload cannot hold one, or exceeds the servers' limit.
 */
export function checkTickSize({ payload }: TrialConfig): void {
  if (payload < MIN_TICK_BYTES || payload > MAX_PAYLOAD_BYTES) {
    throw new UsageError(
      `--payload must be ${MIN_TICK_BYTES} to ${MAX_PAYLOAD_BYTES} bytes: a message carries its number and its time`,
    )
  }
}

/**
 * For scenarios that send orders.
 * @throws {UsageError} when the size is below that of an order, or exceeds the servers' limit.
 */
export function checkOrderSize(flag: string, bytes: number): void {
  if (bytes < MIN_ORDER_BYTES || bytes > MAX_PAYLOAD_BYTES) {
    throw new UsageError(`${flag} must be ${MIN_ORDER_BYTES} to ${MAX_PAYLOAD_BYTES} bytes`)
  }
}

export function describeConfig({ targets, ...rest }: TrialConfig): Record<string, unknown> {
  return { targets: targets.map(({ label }) => label), ...rest }
}

/** Reads `10,100,1000`. */
export function counts(text: string): number[] {
  return list(text).map(positiveInteger)
}

/** Reads `100,0.5`. */
export function positiveNumbers(text: string): number[] {
  return list(text).map(positiveNumber)
}

/** Reads `0,0.1,0.5`. */
export function shares(text: string): number[] {
  return list(text).map((part) => {
    const share = nonNegativeNumber(part)
    if (share > 1) throw new InvalidArgumentError('A share is from 0 to 1.')
    return share
  })
}

/** Reads `uws,ws`. */
export function names(text: string): string[] {
  return list(text)
}

function list(text: string): string[] {
  const parts = text.split(',').map((part) => part.trim())
  if (parts.includes('')) throw new InvalidArgumentError('It must be a list like a,b,c.')
  return parts
}

function targetsWith(abilities: readonly TargetAbility[]): string[] {
  return targetSpecs
    .filter((spec) => abilities.every((ability) => spec.abilities.includes(ability)))
    .map(({ name }) => name)
}
