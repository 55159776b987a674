import { availableParallelism } from 'node:os'
import { type Command, Option, type OptionValues } from 'commander'
import type { BalancerName } from 'webmq-services'
import { UsageError } from '../../exit-codes.js'
import {
  listOf,
  nonNegativeInteger,
  nonNegativeNumber,
  positiveInteger,
  positiveNumber,
  type ServerOptions,
  TRANSPORTS,
} from '../../options.js'
import { FLEET_BROKERS, type FleetBrokerKind } from './durable-broker.js'
import { FAULT_NAMES, FAULTS, type FaultName } from './faults.js'

/** Settings of the scenario. Members that end with `S` are seconds. */
export interface FleetConfig {
  readonly brokers: readonly FleetBrokerKind[]
  readonly faults: readonly FaultName[]
  /** In turn. */
  readonly balancers: readonly BalancerName[]
  readonly backends: number
  readonly users: number
  /** Users that listen by event streams. */
  readonly eventStreams: number
  readonly publishers: number
  /** Messages per second of each publisher. */
  readonly publishRate: number
  readonly rooms: number
  readonly messageSize: number
  readonly ramp: number
  readonly steady: number
  readonly rest: number
  readonly down: number
  /** Of nodes and clients: silence until a ping, and time for its answer. */
  readonly pingInterval: number
  readonly pingTimeout: number
  readonly drainPerSecond: number
  readonly transport: ServerOptions['transport']
  readonly workers: number
}

/** As `webmq-services` starts them. */
const BALANCERS = ['haproxy', 'nginx'] as const satisfies readonly BalancerName[]

/** One thread plays this many clients by default. */
const CLIENTS_PER_WORKER = 200
/** Places of the load balancer. */
const MAX_CLIENTS = 9_900

export function addFleetOptions(command: Command): void {
  command
    .option('--broker <list>', `brokers in turn: ${FLEET_BROKERS.join(', ')}`, listOf(FLEET_BROKERS), ['redis'])
    .option('--faults <list>', `faults in turn: ${FAULT_NAMES.join(', ')} (default: all)`, listOf(FAULT_NAMES))
    .option('--balancer <list>', `load balancers in turn: ${BALANCERS.join(', ')}`, listOf(BALANCERS), ['haproxy'])
    .option('--backends <n>', 'nodes behind the load balancer', positiveInteger, 3)
    .option('--users <n>', 'clients that listen to one room each', positiveInteger, 300)
    .option(
      '--event-streams <n>',
      'users that listen by event streams, in rows of their own (default: a tenth)',
      nonNegativeInteger,
    )
    .option('--publishers <n>', 'clients that publish to all rooms in turn', positiveInteger, 10)
    .option('--publish-rate <n>', 'messages per second and publisher', positiveNumber, 20)
    .option('--rooms <n>', 'rooms; a message goes to all users of one (default: users/10)', positiveInteger)
    .option('--message-size <bytes>', 'size of each payload', positiveInteger, 100)
    .option('--ramp <s>', 'time over which the users come', nonNegativeNumber, 5)
    .option('--steady <s>', 'time before the first fault, with all users', positiveNumber, 4)
    .option('--rest <s>', 'time after each fault, once everybody is connected again', positiveNumber, 3)
    .option('--down <s>', 'time until a killed node or broker is started again', positiveNumber, 1)
    .option('--ping-interval <s>', 'silence until nodes and clients ping each other', positiveNumber, 25)
    .option('--ping-timeout <s>', 'silence after a ping until the connection is given up', positiveNumber, 10)
    .option('--drain-per-second <n>', 'connections that a leaving node closes per second', positiveInteger, 100)
    .option('--workers <n>', 'threads that play the clients (default: by clients and cores)', positiveInteger)
    .addOption(new Option('--transport <name>', 'transport of each node').choices(TRANSPORTS).default('native'))
}

type Given = Omit<FleetConfig, 'brokers' | 'balancers' | 'faults' | 'rooms' | 'workers' | 'eventStreams'> & {
  readonly broker: readonly FleetBrokerKind[]
  readonly balancer: readonly BalancerName[]
  readonly eventStreams?: number
  readonly faults?: readonly FaultName[]
  readonly rooms?: number
  readonly workers?: number
}

/**
 * The settings with every default filled in.
 * @throws {UsageError} for settings that cannot be run.
 */
export function readFleetConfig(values: OptionValues): FleetConfig {
  const given = values as Given
  const { users, publishers, backends } = given
  const clients = users + publishers
  if (clients > MAX_CLIENTS) throw new UsageError(`--users and --publishers: at most ${MAX_CLIENTS} together`)
  if (backends < 2) throw new UsageError('--backends must be 2 or more: clients of a broken node go to another one')
  const rooms = given.rooms ?? Math.max(1, Math.floor(users / 10))
  if (rooms > users) throw new UsageError('--rooms must be at most --users: nobody would listen to the others')
  const eventStreams = given.eventStreams ?? Math.ceil(users / 10)
  if (eventStreams > users) throw new UsageError('--event-streams must be at most --users')
  return {
    brokers: given.broker,
    balancers: given.balancer,
    eventStreams,
    // In the order of the table, whatever the order of the flag.
    faults: FAULT_NAMES.filter((name) => given.faults?.includes(name) ?? true),
    backends,
    users,
    publishers,
    publishRate: given.publishRate,
    rooms,
    messageSize: given.messageSize,
    ramp: given.ramp,
    steady: given.steady,
    rest: given.rest,
    down: given.down,
    pingInterval: given.pingInterval,
    pingTimeout: given.pingTimeout,
    drainPerSecond: given.drainPerSecond,
    transport: given.transport,
    workers: Math.min(clients, given.workers ?? defaultWorkerCount(clients)),
  }
}

export function faultsHelp(): string {
  const width = Math.max(...FAULT_NAMES.map(({ length }) => length))
  return FAULT_NAMES.map((name) => `  ${name.padEnd(width)}  ${FAULTS[name].summary}`).join('\n')
}

function defaultWorkerCount(clients: number): number {
  return Math.max(1, Math.min(availableParallelism(), Math.ceil(clients / CLIENTS_PER_WORKER)))
}
