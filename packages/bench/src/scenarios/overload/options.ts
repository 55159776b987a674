import { resolve } from 'node:path'
import { type Command, InvalidArgumentError, Option, type OptionValues } from 'commander'
import type { ServiceBrokerKind } from '../../brokers/broker-choice.js'
import { UsageError } from '../../exit-codes.js'
import {
  listOf,
  nonNegativeInteger,
  positiveInteger,
  positiveNumber,
  type ServerOptions,
  TRANSPORTS,
} from '../../options.js'

/** Settings of the scenario. Members that end with `S` are seconds. */
export interface OverloadConfig {
  readonly brokers: readonly ServiceBrokerKind[]
  /** Offered load, in multiples of the capacity. */
  readonly loads: readonly number[]
  readonly faults: readonly OverloadFault[]
  /** The load while a fault is played. */
  readonly faultLoad: number
  readonly backends: number
  readonly clients: number
  readonly messageSize: number
  /** That the broker is given, from all nodes together. */
  readonly bytesPerSecond: number
  /** Before a window. */
  readonly settleS: number
  readonly windowS: number
  readonly freezeS: number
  readonly stopS: number
  readonly slowS: number
  readonly slowMs: number
  readonly transport: ServerOptions['transport']
  /** Of the checkout whose server and client are measured; absent: this one. */
  readonly root?: string | undefined
}

const BROKERS = ['rabbitmq', 'redis', 'nats'] as const satisfies readonly ServiceBrokerKind[]

/** In the order in which they are played. */
export const OVERLOAD_FAULTS = ['freeze', 'stop', 'slow'] as const
export type OverloadFault = (typeof OVERLOAD_FAULTS)[number]

const LOADS = [0.5, 0.8, 1, 1.3, 2, 3]

export function addOverloadOptions(command: Command): void {
  command
    .option('--broker <list>', `brokers in turn: ${BROKERS.join(', ')}`, listOf(BROKERS), ['redis'])
    .option('--loads <list>', 'offered loads in turn, in multiples of the capacity', loadList, LOADS)
    .option('--faults <list>', `faults in turn: ${OVERLOAD_FAULTS.join(', ')}, or none (default: all)`, faultList)
    .option('--fault-load <n>', 'load while a fault is played, in multiples of the capacity', positiveNumber, 0.7)
    .option('--backends <n>', 'nodes', positiveInteger, 2)
    .option('--clients <n>', 'clients that publish', positiveInteger, 200)
    .option('--message-size <bytes>', 'size of each payload', positiveInteger, 1_024)
    .option('--bytes-per-second <n>', 'what the network carries to the broker', positiveInteger, 1_000_000)
    .option('--settle <s>', 'time under load before a window', positiveNumber, 3)
    .option('--window <s>', 'measured time', positiveNumber, 10)
    .option('--freeze <s>', 'freeze: time in which no byte reaches the broker or comes from it', positiveNumber, 3)
    .option('--stop <s>', 'stop: time in which one node has no CPU', positiveNumber, 5)
    .option('--slow <s>', 'slow: time in which the network is slow', positiveNumber, 5)
    .option('--slow-by <ms>', 'slow: delay in each direction', nonNegativeInteger, 200)
    .addOption(new Option('--transport <name>', 'transport of each node').choices(TRANSPORTS).default('native'))
    .option('--root <folder>', 'measure the server and the client that are built in this other checkout')
}

/** @throws {UsageError} for a load at which nothing can become normal again. */
export function readOverloadConfig(values: OptionValues): OverloadConfig {
  const { broker, faults = OVERLOAD_FAULTS, settle, window, freeze, stop, slow, slowBy, ...others } = values
  if (others.faultLoad >= 1) throw new UsageError('--fault-load must be below 1: a backlog needs capacity to go')
  const { loads, faultLoad, backends, clients, messageSize, bytesPerSecond, transport } = others
  const root = others.root === undefined ? {} : { root: resolve(others.root) }
  const own = { loads, faultLoad, backends, clients, messageSize, bytesPerSecond, transport }
  const times = { settleS: settle, windowS: window, freezeS: freeze, stopS: stop, slowS: slow, slowMs: slowBy }
  return { brokers: broker, faults, ...own, ...times, ...root } as OverloadConfig
}

function faultList(text: string): readonly OverloadFault[] {
  return text === 'none' ? [] : listOf(OVERLOAD_FAULTS)(text)
}

function loadList(text: string): number[] {
  const loads = text.split(',').map(positiveNumber)
  if (loads.length > 20) throw new InvalidArgumentError('It must be at most 20 loads.')
  return loads
}
