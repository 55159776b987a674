import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { ServiceBrokerKind } from '../brokers/broker-choice.js'
import { UsageError } from '../exit-codes.js'
import type { MachineInfo } from '../measure/machine.js'
import { asRecord } from '../report/read-record.js'

/** Costs of one node. Times are CPU time of its process, user and system, all threads. */
export interface NodeCosts {
  /** Resident memory of a node without connections. */
  readonly baseBytes: number
  /** Of an idle connection that listens to one key, in user space. */
  readonly connectionBytes: number
  /** Cores of a node that does nothing. */
  readonly idleCores: number
  /** A ping of a client, and its answer. */
  readonly keepaliveUs: number
  /** TCP, upgrade, token and `welcome`. */
  readonly connectUs: number
  /** A publish in the process, with what wakes its event loop. */
  readonly publishUs: number
  /** A publish of a client with its answer, on one node without a broker. */
  readonly clientPublishUs: number
  /** A write to a socket. */
  readonly writeUs: number
  /** A message in such a write. */
  readonly frameUs: number
  /** A byte of its payload. */
  readonly byteNs: number
  /** Bytes of a message on the wire beyond its payload. */
  readonly frameBytes: number
  /** A read of the load generator, and a message in it. */
  readonly generatorReadUs: number
  readonly generatorFrameUs: number
}

/** Costs of a message that goes through a broker; CPU time of the processes, bytes beyond the payload. */
export interface BrokerCosts {
  /** At the node that publishes. */
  readonly publisherUs: number
  readonly publisherLoggedUs: number
  /** At each node that gets it; of a logged message whether anybody there listens or not. */
  readonly listenerUs: number
  readonly listenerLoggedUs: number
  /** At the broker: to take it, and to pass it to one node. */
  readonly brokerUs: number
  readonly brokerCopyUs: number
  readonly brokerLoggedUs: number
  readonly brokerLoggedCopyUs: number
  /** From a node to the broker, and from the broker to one node. */
  readonly publishBytes: number
  readonly copyBytes: number
  readonly publishLoggedBytes: number
  readonly copyLoggedBytes: number
  /** From a publish on one node to receipt at the only listener of another. */
  readonly hopP50Ms: number
  readonly hopP99Ms: number
}

/** Everything that the model knows of a machine. */
export interface Coefficients {
  /** That measured them. */
  readonly command: string
  readonly machine: Pick<
    MachineInfo,
    'cpuModel' | 'cores' | 'kernel' | 'nodeVersion' | 'loadAverage' | 'gitCommit' | 'startedAt'
  >
  readonly node: NodeCosts
  readonly brokers: Readonly<Partial<Record<ServiceBrokerKind, BrokerCosts>>>
  /** By fit: root mean square of the relative error. */
  readonly residuals: Readonly<Record<string, number | null>>
}

const NODE_MEMBERS = [
  'baseBytes',
  'connectionBytes',
  'idleCores',
  'keepaliveUs',
  'connectUs',
  'publishUs',
  'clientPublishUs',
  'writeUs',
  'frameUs',
  'byteNs',
  'frameBytes',
  'generatorReadUs',
  'generatorFrameUs',
] as const satisfies readonly (keyof NodeCosts)[]

const BROKER_MEMBERS = [
  'publisherUs',
  'publisherLoggedUs',
  'listenerUs',
  'listenerLoggedUs',
  'brokerUs',
  'brokerCopyUs',
  'brokerLoggedUs',
  'brokerLoggedCopyUs',
  'publishBytes',
  'copyBytes',
  'publishLoggedBytes',
  'copyLoggedBytes',
  'hopP50Ms',
  'hopP99Ms',
] as const satisfies readonly (keyof BrokerCosts)[]

const BROKERS: readonly ServiceBrokerKind[] = ['redis', 'nats', 'rabbitmq']

/** The measured ones of this repository. The file is beside the sources, also in the package. */
export const DEFAULT_COEFFICIENTS = fileURLToPath(new URL('../../src/model/coefficients.json', import.meta.url))

/**
 * Reads coefficients, or the result of `--scenario costs`.
 * @throws {UsageError} for a file that is neither, or lacks a figure.
 */
export function readCoefficients(file: string): Coefficients {
  let value: unknown
  try {
    value = JSON.parse(readFileSync(file, 'utf8'))
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new UsageError(`${file} could not be read as JSON: ${reason}`, { cause })
  }
  const members = isObject(value) ? value : {}
  return members.scenario === 'costs' ? fromResult(value, file) : checked(members, file)
}

/** The coefficients in a result of `costs`. */
function fromResult(value: unknown, file: string): Coefficients {
  const { command, machine, rows } = asRecord(value, file)
  const memory = rows.find(({ mode }) => mode === 'memory')
  const { cpuModel, cores, kernel, nodeVersion, loadAverage, gitCommit, startedAt } = machine
  return checked(
    {
      command,
      machine: { cpuModel, cores, kernel, nodeVersion, loadAverage, gitCommit, startedAt },
      node: memory?.node,
      brokers: Object.fromEntries(
        rows
          .filter(({ mode, verdict }) => mode !== 'memory' && verdict !== 'failed')
          .map((row) => [row.mode, row.broker]),
      ),
      residuals: Object.assign({}, ...rows.map(({ residuals }) => residuals)),
    },
    file,
  )
}

function checked(value: Readonly<Record<string, unknown>>, file: string): Coefficients {
  const brokers = isObject(value.brokers) ? value.brokers : {}
  const known = BROKERS.filter((kind) => brokers[kind] !== undefined)
  const faults = [
    ...missing(value.node, NODE_MEMBERS).map((name) => `node.${name}`),
    ...known.flatMap((kind) => missing(brokers[kind], BROKER_MEMBERS).map((name) => `brokers.${kind}.${name}`)),
    ...(typeof value.command === 'string' && isObject(value.machine) ? [] : ['command', 'machine']),
  ]
  if (faults.length > 0)
    throw new UsageError(`${file} has no coefficients of costs: ${faults.join(', ')} missing or below 0`)
  return {
    command: value.command as string,
    machine: value.machine as unknown as Coefficients['machine'],
    node: value.node as NodeCosts,
    brokers: Object.fromEntries(known.map((kind) => [kind, brokers[kind]])) as Coefficients['brokers'],
    residuals: (value.residuals ?? {}) as Coefficients['residuals'],
  }
}

function missing(value: unknown, names: readonly string[]): string[] {
  const members = isObject(value) ? value : {}
  return names.filter((name) => {
    const number = members[name]
    return typeof number !== 'number' || !Number.isFinite(number) || number < 0
  })
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
