import { readFileSync } from 'node:fs'
import { UsageError } from '../exit-codes.js'

/** What connections do. Rates are per second. */
export interface Workload {
  readonly name: string
  /** Keys that each connection listens to. */
  readonly listensPerConnection: number
  /** Different keys, however many connections there are; absent: by `listenersPerKey`. */
  readonly keys?: number
  /** Connections that listen to one key; absent: by `keys`. */
  readonly listenersPerKey?: number
  /** By each connection, to keys that have listeners. */
  readonly clientPublishesPerSecond: number
  /** By back ends, over all keys. */
  readonly serverPublishesPerSecond: number
  readonly payloadBytes: number
  /** Of the messages that are logged, 0 to 1. */
  readonly loggedShare: number
  /** Mean time from connect to disconnect. */
  readonly sessionSeconds: number
  /**
   * How the system is divided when one broker is not enough. `keys`: each broker with its nodes has a share of the keys
   * and of their connections. `copies`: each has a share of the connections, and every publish goes to all.
   */
  readonly split: 'keys' | 'copies'
}

/** Workloads by name. */
export const WORKLOADS: readonly Workload[] = [
  {
    name: 'chat',
    listensPerConnection: 3,
    listenersPerKey: 50,
    clientPublishesPerSecond: 0.02,
    serverPublishesPerSecond: 0,
    payloadBytes: 200,
    loggedShare: 1,
    sessionSeconds: 1_800,
    split: 'keys',
  },
  {
    name: 'broadcast',
    listensPerConnection: 1,
    keys: 1,
    clientPublishesPerSecond: 0,
    serverPublishesPerSecond: 2,
    payloadBytes: 300,
    loggedShare: 1,
    sessionSeconds: 3_600,
    split: 'copies',
  },
  {
    name: 'market',
    listensPerConnection: 20,
    keys: 5_000,
    clientPublishesPerSecond: 0,
    serverPublishesPerSecond: 5_000,
    payloadBytes: 100,
    loggedShare: 0,
    sessionSeconds: 3_600,
    split: 'copies',
  },
  {
    // The load of Centrifugo's published run. It does not say who publishes; here clients do.
    name: 'groups',
    listensPerConnection: 2,
    listenersPerKey: 1.82,
    clientPublishesPerSecond: 0.275,
    serverPublishesPerSecond: 0,
    payloadBytes: 100,
    loggedShare: 0,
    sessionSeconds: 300,
    split: 'keys',
  },
]

/** Members of a workload that are numbers, and their bounds. */
const BOUNDS = {
  listensPerConnection: [1, 10_000],
  keys: [1, 1e12],
  listenersPerKey: [1, 1e9],
  clientPublishesPerSecond: [0, 100_000],
  serverPublishesPerSecond: [0, 1e9],
  payloadBytes: [0, 16 * 1024 * 1024],
  loggedShare: [0, 1],
  sessionSeconds: [1, 1e9],
} as const

const MAX_FILE_BYTES = 64 * 1024

/**
 * A workload by name, or from a JSON file.
 * @throws {UsageError} when there is none, or a member is missing, unknown or out of bounds.
 */
export function readWorkload(text: string): Workload {
  const known = WORKLOADS.find(({ name }) => name === text)
  if (known !== undefined) return known
  if (!text.endsWith('.json')) {
    throw new UsageError(
      `there is no workload '${text}'; there are ${WORKLOADS.map(({ name }) => name).join(', ')} and JSON files`,
    )
  }
  return checkWorkload(parse(text), text)
}

function parse(file: string): unknown {
  try {
    const text = readFileSync(file, 'utf8')
    if (text.length > MAX_FILE_BYTES) throw new RangeError(`it has more than ${MAX_FILE_BYTES} bytes`)
    return JSON.parse(text)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new UsageError(`${file} could not be read as JSON: ${reason}`, { cause })
  }
}

/** @throws {UsageError} naming the member. */
export function checkWorkload(value: unknown, file: string): Workload {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new UsageError(`${file} is not an object`)
  const members = value as Readonly<Record<string, unknown>>
  const allowed = ['name', 'split', ...Object.keys(BOUNDS)]
  const unknown = Object.keys(members).find((name) => !allowed.includes(name))
  if (unknown !== undefined) throw new UsageError(`${file}: '${unknown}' is unknown; allowed are ${allowed.join(', ')}`)
  if ((members.keys === undefined) === (members.listenersPerKey === undefined)) {
    throw new UsageError(`${file} needs either 'keys' or 'listenersPerKey'`)
  }
  for (const [name, [least, most]] of Object.entries(BOUNDS)) {
    const number = members[name]
    if (number === undefined && (name === 'keys' || name === 'listenersPerKey')) continue
    if (typeof number !== 'number' || !(number >= least && number <= most)) {
      throw new UsageError(`${file}: '${name}' must be a number from ${least} to ${most}`)
    }
  }
  if (members.split !== 'keys' && members.split !== 'copies')
    throw new UsageError(`${file}: 'split' must be keys or copies`)
  return {
    ...(members as unknown as Workload),
    name: typeof members.name === 'string' ? members.name.slice(0, 64) : file,
  }
}

/** The rates that follow from a workload and a number of connections. */
export interface Traffic {
  readonly connections: number
  readonly keys: number
  readonly listenersPerKey: number
  readonly publishesPerSecond: number
  /** Of them, those of back ends. */
  readonly serverPublishesPerSecond: number
  readonly deliveriesPerSecond: number
  readonly connectsPerSecond: number
}

/** @param connections At least 1. */
export function trafficOf(workload: Workload, connections: number): Traffic {
  const listens = connections * workload.listensPerConnection
  const keys = Math.max(1, workload.keys ?? listens / (workload.listenersPerKey ?? 1))
  const listenersPerKey = Math.min(connections, listens / keys)
  const publishesPerSecond = connections * workload.clientPublishesPerSecond + workload.serverPublishesPerSecond
  return {
    connections,
    keys,
    listenersPerKey,
    publishesPerSecond,
    serverPublishesPerSecond: workload.serverPublishesPerSecond,
    deliveriesPerSecond: publishesPerSecond * listenersPerKey,
    connectsPerSecond: connections / workload.sessionSeconds,
  }
}

/** The same system divided among this many brokers: what one of them has. */
export function shareOf(workload: Workload, traffic: Traffic, parts: number): Traffic {
  const connections = traffic.connections / parts
  if (workload.split === 'keys') {
    return {
      connections,
      keys: Math.max(1, traffic.keys / parts),
      listenersPerKey: Math.min(connections, traffic.listenersPerKey),
      publishesPerSecond: traffic.publishesPerSecond / parts,
      serverPublishesPerSecond: traffic.serverPublishesPerSecond / parts,
      deliveriesPerSecond: traffic.deliveriesPerSecond / parts,
      connectsPerSecond: traffic.connectsPerSecond / parts,
    }
  }
  return {
    ...traffic,
    connections,
    listenersPerKey: traffic.listenersPerKey / parts,
    deliveriesPerSecond: traffic.deliveriesPerSecond / parts,
    connectsPerSecond: traffic.connectsPerSecond / parts,
  }
}
