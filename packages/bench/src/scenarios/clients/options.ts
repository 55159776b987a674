import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { type Command, Option, type OptionValues } from 'commander'
import { type BrokerChoice, withoutSecrets } from '../../brokers/broker-choice.js'
import { UsageError } from '../../exit-codes.js'
import type { KeyPlanOptions } from '../../load/key-plan.js'
import { MIN_MESSAGE_SIZE_BYTES } from '../../load/payload.js'
import {
  addServerOptions,
  nonNegativeNumber,
  positiveInteger,
  positiveNumber,
  type ServerOptions,
  seedNumber,
} from '../../options.js'
import { CLIENTS_BY, CLIENTS_TARGETS, type ClientsConfig } from '../../results/clients-report.js'

/** Seconds. */
export const DEFAULT_DURATION_S = 10
export const DEFAULT_WARMUP_S = 2
/** One generator thread plays this many clients by default. */
const CLIENTS_PER_WORKER = 200

const BYTES_LIMIT = 64 * 1_024 * 1_024

type GivenOptions = Omit<ClientsConfig, 'keyPoolSize' | 'workers' | 'broker'> &
  ServerOptions & { readonly keyPoolSize?: number; readonly workers?: number }

export interface ClientsSettings {
  readonly config: ClientsConfig
  /** Including passwords. */
  readonly broker: BrokerChoice
  /** What the user should know before they wait. */
  readonly notes: readonly string[]
}

export function addClientsOptions(command: Command): void {
  command
    .option('--clients <n>', 'WebSocket clients', positiveInteger, 100)
    .option('--backends <n>', 'backend processes', positiveInteger, 1)
    .option('--listens <n>', 'keys each client listens to', positiveInteger, 10)
    .option('--publish-rate <n>', 'messages per second and client', positiveNumber, 5)
    .option('--key-pool-size <n>', 'keys to choose from (default: clients/2)', positiveInteger)
    .option('--duration <s>', 'seconds to publish', positiveNumber, DEFAULT_DURATION_S)
    .option('--message-size <bytes>', 'size of each payload', positiveInteger, 1024)
    .option('--warmup <s>', 'seconds of the same traffic before, not counted', nonNegativeNumber, DEFAULT_WARMUP_S)
    .option('--seed <n>', 'decides keys and send times', seedNumber, 1)
    .option('--workers <n>', 'threads that play the clients (default: by clients and cores)', positiveInteger)
  addClientsByOption(command)
  addServerOptions(command)
  command.addOption(
    new Option('--target <name>', 'what serves: WebMQ, or a server by hand (targets/by-hand.mjs)')
      .choices(CLIENTS_TARGETS)
      .default('webmq'),
  )
  addRootOption(command)
}

/** Adds the flag that takes the server of another checkout. */
export function addRootOption(command: Command): void {
  command.option('--root <folder>', 'measure the server that is built in this other checkout')
}

/** Adds the flag that says what plays the clients. */
export function addClientsByOption(command: Command): void {
  command.addOption(
    new Option('--clients-by <name>', 'what plays the clients: the client library, or the load generator in Rust')
      .choices(CLIENTS_BY)
      .default('library'),
  )
}

/**
 * The settings with every default filled in.
 * @throws {UsageError} for settings that cannot be run.
 */
export function readClientsConfig(values: OptionValues): ClientsSettings {
  const given = values as GivenOptions
  const { clients, backends, messageSize } = given
  const broker = given.broker ?? { kind: backends > 1 ? 'rabbitmq' : 'memory' }
  if (broker.kind === 'memory' && backends > 1) {
    throw new UsageError(
      `--broker memory is embedded in each backend and connects none of them: it cannot run --backends ${backends}`,
    )
  }
  if (messageSize < MIN_MESSAGE_SIZE_BYTES || messageSize > BYTES_LIMIT) {
    throw new UsageError(
      `--message-size must be ${MIN_MESSAGE_SIZE_BYTES} to ${BYTES_LIMIT} bytes: a message carries its publisher, its number and its time`,
    )
  }
  const keyPoolSize = given.keyPoolSize ?? Math.max(1, Math.floor(clients / 2))
  const { clientsBy } = given
  const workers = Math.min(clients, given.workers ?? (clientsBy === 'generator' ? 1 : defaultWorkerCount(clients)))
  const listens = Math.min(given.listens, keyPoolSize)
  const notes =
    listens < given.listens
      ? [`The pool has ${keyPoolSize} keys: each client listens to all of them instead of to ${given.listens}.`]
      : []
  return {
    broker,
    config: {
      clients,
      backends,
      listens,
      publishRate: given.publishRate,
      keyPoolSize,
      duration: given.duration,
      warmup: given.warmup,
      messageSize,
      broker: broker.kind,
      ...(broker.address === undefined ? {} : { brokerAddress: withoutSecrets(broker.address) }),
      transport: given.transport,
      ...(given.target === 'by-hand' ? { target: given.target } : {}),
      ...(given.root === undefined ? {} : { root: resolve(given.root) }),
      clientsBy,
      seed: given.seed,
      workers,
    },
    notes,
  }
}

/** The plan that these settings stand for. */
export function planOptionsOf(config: ClientsConfig): KeyPlanOptions {
  return {
    clientCount: config.clients,
    listensPerClient: config.listens,
    keyPoolSize: config.keyPoolSize,
    publishRatePerSecond: config.publishRate,
    durationUs: config.duration * 1_000_000,
    warmupUs: config.warmup * 1_000_000,
    seed: config.seed,
  }
}

function defaultWorkerCount(clients: number): number {
  return Math.min(availableParallelism(), Math.ceil(clients / CLIENTS_PER_WORKER))
}
