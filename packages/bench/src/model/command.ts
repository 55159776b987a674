import { readFileSync } from 'node:fs'
import { Command, InvalidArgumentError } from 'commander'
import { EXIT, UsageError } from '../exit-codes.js'
import { nonNegativeNumber, positiveInteger, positiveNumber } from '../options.js'
import type { ProgressOutput } from '../progress.js'
import { readRecord } from '../report/read-record.js'
import { writeJson, writeOutput } from '../report/write-output.js'
import { names } from '../trials/trial-options.js'
import { type Assumptions, DEFAULT_ASSUMPTIONS } from './assumptions.js'
import { casesOf } from './check/cases.js'
import { checkRun } from './check/check-run.js'
import { type Coefficients, DEFAULT_COEFFICIENTS, readCoefficients } from './coefficients.js'
import { DOC_SIZES, docSections, machineLine, withSections } from './doc-sections.js'
import { peerTable } from './peers.js'
import { MODEL_BROKERS, type ModelBroker } from './size.js'
import {
  brokerTable,
  checkTable,
  knownBrokers,
  markdown,
  nodeTable,
  predictionTable,
  residualTable,
  type TextTable,
  wallTable,
} from './tables.js'
import { readWorkload, WORKLOADS, type Workload } from './workload.js'

interface ModelFlags extends Omit<Assumptions, 'isSharded' | 'coreHourPrice' | 'gibHourPrice' | 'gibOutPrice'> {
  readonly costs: string
  readonly workload: readonly string[]
  readonly connections: readonly number[]
  readonly broker?: readonly ModelBroker[]
  readonly shard: boolean
  readonly coreHour: number
  readonly gibHour: number
  readonly gibOut: number
  readonly check: readonly string[]
  readonly maxError?: number
  readonly save?: string
  readonly docs?: string
}

const MAX_LISTED = 20
const MAX_CONNECTIONS = 1e10
const MAX_PARTITIONS = 64

/**
 * `benchmark.js model`: predicts what a workload needs from measured costs, or compares predictions with results.
 * @param args Arguments after `model`.
 * @throws {UsageError} for files that cannot be read and settings that cannot be.
 */
export function runModel(args: readonly string[], stdout: ProgressOutput, stderr: ProgressOutput): number {
  const flags = createCommand(stdout, stderr).parse(args, { from: 'user' }).opts<ModelFlags>()
  const coefficients = readCoefficients(flags.costs)
  if (flags.save !== undefined) writeJson(coefficients, flags.save, stdout)
  if (flags.docs !== undefined) {
    const text = readText(flags.docs)
    writeOutput('--docs', withSections(text, docSections(coefficients)), flags.docs, stdout)
  }
  if (flags.save !== undefined || flags.docs !== undefined) return EXIT.ok
  if (flags.check.length > 0) return check(coefficients, flags, stdout)
  const workloads = flags.workload.map(readWorkload)
  const assumptions = assumptionsOf(flags)
  const kinds = flags.broker ?? knownBrokers(coefficients)
  const unknown = kinds.find((kind) => !knownBrokers(coefficients).includes(kind))
  if (unknown !== undefined) throw new UsageError(`${flags.costs} has no costs of ${unknown}`)
  stdout.write(report(coefficients, workloads, flags.connections, kinds, assumptions))
  return EXIT.ok
}

function report(
  coefficients: Coefficients,
  workloads: readonly Workload[],
  sizes: readonly number[],
  kinds: readonly ModelBroker[],
  assumptions: Assumptions,
): string {
  const parts: (readonly [string, TextTable])[] = [
    ['Costs of a node', nodeTable(coefficients)],
    ['Costs of a message', brokerTable(coefficients)],
    ['Errors of the fits', residualTable(coefficients)],
    ...workloads.map((workload): [string, TextTable] => [
      `Workload ${workload.name}`,
      predictionTable(coefficients, workload, sizes, kinds, assumptions),
    ]),
    ['First walls of one broker', wallTable(coefficients, workloads, kinds, assumptions)],
    ['A million connections', peerTable(coefficients, assumptions)],
  ]
  const text = parts.map(([title, table]) => `## ${title}\n\n${markdown(table)}`)
  return `${[machineLine(coefficients), `Assumed: ${JSON.stringify(assumptions)}`, ...text].join('\n\n')}\n`
}

function check(coefficients: Coefficients, { check: files, maxError }: ModelFlags, stdout: ProgressOutput): number {
  const results = files.flatMap((file) => {
    const record = readRecord(file)
    return casesOf(record).map((one) => checkRun(coefficients, one, record.machine.cores))
  })
  stdout.write(`${markdown(checkTable(results))}\n`)
  const worst = Math.max(0, ...results.flatMap(({ figures }) => figures.map(({ error }) => Math.abs(error))))
  if (maxError === undefined || worst * 100 <= maxError) return EXIT.ok
  stdout.write(`FAILS: an error of ${Math.round(worst * 100)} % is above --max-error ${maxError}\n`)
  return EXIT.assertion
}

function assumptionsOf(flags: ModelFlags): Assumptions {
  const { nodeCores, nodeConnections, brokerCores, utilization, networkGbits, historyPartitions } = flags
  if (utilization > 1) throw new UsageError('--utilization must be at most 1')
  if (historyPartitions > MAX_PARTITIONS) throw new UsageError(`--history-partitions must be at most ${MAX_PARTITIONS}`)
  return {
    nodeCores,
    nodeConnections,
    brokerCores,
    utilization,
    networkGbits,
    historyPartitions,
    isSharded: flags.shard,
    coreHourPrice: flags.coreHour,
    gibHourPrice: flags.gibHour,
    gibOutPrice: flags.gibOut,
  }
}

function createCommand(stdout: ProgressOutput, stderr: ProgressOutput): Command {
  const defaults = DEFAULT_ASSUMPTIONS
  const builtIn = WORKLOADS.map(({ name }) => name)
  return new Command('benchmark.js model')
    .description('Predicts nodes, broker load, bandwidth and latency from measured costs, and checks predictions.')
    .option('--costs <file>', 'coefficients, or a result of --scenario costs', DEFAULT_COEFFICIENTS)
    .option('--workload <list>', `${builtIn.join(', ')}, or JSON files`, names, ['chat', 'broadcast', 'market'])
    .option('--connections <list>', 'sizes, such as 1e5,1e6', sizes, [...DOC_SIZES])
    .option('--broker <list>', `${MODEL_BROKERS.join(', ')} (default: all that were measured)`, brokers)
    .option('--history-partitions <n>', 'of the nodes', positiveInteger, defaults.historyPartitions)
    .option('--shard', 'the balancer keeps connections of a key together', false)
    .option('--node-cores <n>', 'cores of a node', positiveInteger, defaults.nodeCores)
    .option('--node-connections <n>', 'most connections of a node', positiveInteger, defaults.nodeConnections)
    .option('--broker-cores <n>', 'cores of a broker; Redis uses one', positiveInteger, defaults.brokerCores)
    .option('--utilization <share>', 'of a core or link that may be used', positiveNumber, defaults.utilization)
    .option('--network-gbits <n>', 'of each machine, in each direction', positiveNumber, defaults.networkGbits)
    .option('--core-hour <price>', 'of a core for an hour; an assumption', nonNegativeNumber, defaults.coreHourPrice)
    .option('--gib-hour <price>', 'of a GiB of memory for an hour', nonNegativeNumber, defaults.gibHourPrice)
    .option('--gib-out <price>', 'of a GiB sent to clients', nonNegativeNumber, defaults.gibOutPrice)
    .option('--check <file>', 'compare with a result of --json; repeatable', collect, [])
    .option('--max-error <percent>', 'with --check: exit code 3 above it', positiveNumber)
    .option('--save <file>', 'write the coefficients of --costs as JSON')
    .option('--docs <file>', 'write the generated parts of a text anew')
    .exitOverride()
    .configureOutput({ writeOut: (text) => stdout.write(text), writeErr: (text) => stderr.write(text) })
    .allowExcessArguments(false)
    .addHelpText(
      'after',
      `
A workload file is an object with
  listensPerConnection       keys that each connection listens to
  keys | listenersPerKey     different keys, or connections that listen to one; exactly one of both
  clientPublishesPerSecond   of each connection
  serverPublishesPerSecond   of back ends, over all keys
  payloadBytes, loggedShare  of the messages; the share is from 0 to 1
  sessionSeconds             mean time from connect to disconnect
  split                      with several brokers: "keys" divides the keys, "copies" publishes to all of them

Examples:
  node benchmark.js --scenario costs --json costs.json && node benchmark.js model --costs costs.json
  node benchmark.js model --workload chat --connections 1e6 --broker nats --history-partitions 16 --shard
  node benchmark.js model --check auction.json --check paced.json --max-error 50

Exit codes: 0 ok, 1 a file could not be written, 2 wrong usage, 3 an error is above --max-error.`,
    )
}

/** Reads `1e5,2500000`. */
function sizes(text: string): number[] {
  const values = names(text).map((part) => (/^\d+(\.\d+)?(e\d{1,2})?$/.test(part) ? Number(part) : Number.NaN))
  if (values.length > MAX_LISTED || values.some((value) => !(value >= 1 && value <= MAX_CONNECTIONS))) {
    throw new InvalidArgumentError(`It must be a list of at most ${MAX_LISTED} numbers like 1e5, from 1 to 1e10.`)
  }
  return values
}

function brokers(text: string): ModelBroker[] {
  return names(text).map((name) => {
    const kind = MODEL_BROKERS.find((known) => known === name)
    if (kind === undefined) throw new InvalidArgumentError(`Allowed are ${MODEL_BROKERS.join(', ')}.`)
    return kind
  })
}

function collect(file: string, previous: readonly string[]): string[] {
  if (previous.length >= MAX_LISTED) throw new InvalidArgumentError(`At most ${MAX_LISTED} files.`)
  return [...previous, file]
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new UsageError(`${file} could not be read`, { cause })
  }
}
