import { type Command, InvalidArgumentError, Option } from 'commander'
import { BROKER_KINDS, type BrokerChoice, parseBroker } from './brokers/broker-choice.js'

export interface CommonOptions {
  readonly scenario: string
  readonly json?: string
  readonly csv?: string
  readonly html?: string
  readonly svg?: string
  /** Conditions, as written. */
  readonly assert: readonly string[]
  readonly progress: boolean
}

export function addCommonOptions(command: Command, scenarioNames: readonly string[], defaultScenario: string): void {
  command
    .addOption(new Option('--scenario <name>', 'what to measure').choices(scenarioNames).default(defaultScenario))
    .option('--json <file>', "write the result as JSON; '-' for standard output")
    .option('--csv <file>', 'write the table as CSV')
    .option('--html <file>', 'write the report as one page with plots')
    .option('--svg <file>', 'write the main plot as a picture')
    .option(
      '--assert <condition>',
      'end with exit code 3 unless this holds; repeatable',
      (condition: string, previous: readonly string[]) => [...previous, condition],
      [],
    )
    .option('--no-progress', 'no progress bar or lines')
}

/** Transports of a server, as its option `transport` names them. */
export const TRANSPORTS = ['native', 'ws', 'uws', 'auto'] as const

export interface ServerOptions {
  /** Absent: depends on the number of servers. */
  readonly broker?: BrokerChoice
  readonly transport: (typeof TRANSPORTS)[number]
}

export function addServerOptions(command: Command): void {
  command
    .option(
      '--broker <name>',
      `what connects the backends: ${BROKER_KINDS.join(', ')}, started and ended by the run, or the address of one ` +
        'that runs, such as amqp://localhost (default: memory; rabbitmq for several backends)',
      parseBroker,
    )
    .addOption(new Option('--transport <name>', 'transport of each backend').choices(TRANSPORTS).default('native'))
}

/** Reads some of these names, separated by commas. */
export function listOf<Name extends string>(names: readonly Name[]): (text: string) => Name[] {
  return (text) => {
    const chosen = text.split(',').map((part) => {
      const name = names.find((known) => known === part.trim())
      if (name === undefined) throw new InvalidArgumentError(`It must be a list of ${names.join(', ')}.`)
      return name
    })
    return [...new Set(chosen)]
  }
}

/** Reads an integer above zero. */
export function positiveInteger(text: string): number {
  const number = readNumber(text)
  if (!Number.isSafeInteger(number) || number < 1) throw new InvalidArgumentError('It must be a whole number above 0.')
  return number
}

/** Reads a 32-bit integer from zero up. */
export function seedNumber(text: string): number {
  const number = readNumber(text)
  if (!Number.isInteger(number) || number < 0 || number > 0xffff_ffff) {
    throw new InvalidArgumentError('It must be a whole number from 0 to 4294967295.')
  }
  return number
}

/** Reads a number above zero. */
export function positiveNumber(text: string): number {
  const number = readNumber(text)
  if (!(number > 0)) throw new InvalidArgumentError('It must be a number above 0.')
  return number
}

/** Reads a whole number from zero up. */
export function nonNegativeInteger(text: string): number {
  const value = nonNegativeNumber(text)
  if (!Number.isSafeInteger(value)) throw new InvalidArgumentError('It must be a whole number.')
  return value
}

/** Reads a number from zero up. */
export function nonNegativeNumber(text: string): number {
  const number = readNumber(text)
  if (!(number >= 0)) throw new InvalidArgumentError('It must be a number, 0 or above.')
  return number
}

/** Decimal notation only: `Number` alone accepts '', '0x10' and 'Infinity'. */
function readNumber(text: string): number {
  return /^\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : Number.NaN
}
