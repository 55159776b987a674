/** Everything that the clients of a fleet saw. Times are microseconds of the machine's monotonic clock. */
export interface FleetLog {
  /** First copies of messages, in the order of arrival; later copies are in `irregularities`. */
  readonly deliveries: readonly Delivery[]
  /** Times at which a publish was accepted. */
  readonly acceptedUs: readonly number[]
  /** Times at which a publish was refused and tried again. */
  readonly retriedUs: readonly number[]
  readonly failures: readonly PublishFailure[]
  readonly connections: readonly ConnectionRecord[]
  readonly gaps: readonly ToldGap[]
  readonly irregularities: readonly Irregularity[]
  /** By key. */
  readonly publications: ReadonlyMap<string, readonly Publication[]>
  readonly users: readonly UserRecord[]
}

export interface Delivery {
  readonly atUs: number
  /** From the intended time of its publish. */
  readonly latencyUs: number
  /** To a user who listens by an event stream. */
  readonly isStream: boolean
}

export interface PublishFailure {
  readonly atUs: number
  readonly reason: string
}

/** The client library's word for the node of an event stream, which it does not know. */
export const STREAM_NODE = 'sse'

export interface ConnectionRecord {
  readonly client: string
  /** As the node names itself; every start of a node is another name. Of an event stream: {@link STREAM_NODE}. */
  readonly node: string
  readonly openedUs: number
  /** `null`: it was open to the end. */
  readonly endedUs: number | null
  /** The first delivery to a user, or the first accepted publish of a publisher, on this connection. */
  readonly firstUs: number | null
}

/** A listener was told that messages may be missing. */
export interface ToldGap {
  readonly client: string
  readonly atUs: number
  readonly reason: string
}

/** A message that came a second time, or after a later one of its key. */
export interface Irregularity {
  readonly kind: 'doubled' | 'out of order'
  readonly client: string
  readonly key: string
  readonly number: number
  /** The intended time of its publish. */
  readonly createdUs: number
}

/** A message of a key; its place in the list is its number. */
export interface Publication {
  /** The intended time. */
  readonly createdUs: number
  /** When it was first handed to the client library; `null`: the run ended before. */
  startedUs: number | null
  isAccepted: boolean
}

/** What one user received. */
export interface UserRecord {
  readonly client: string
  /** It listens by an event stream. */
  readonly isStream: boolean
  /** When its listen was accepted: it gets every message that is published later. */
  readonly readyUs: number
  /** Keys that its pattern matches. */
  readonly keys: readonly string[]
  readonly received: ReadonlyMap<string, Received>
}

/** Numbers of one key that arrived: `first` up to, without, `next`, except for the holes. */
export interface Received {
  readonly first: number
  readonly next: number
  readonly holes: readonly Hole[]
}

/** Numbers that did not arrive: `from` up to, without, `to`. */
export interface Hole {
  readonly from: number
  readonly to: number
  /** When the messages before and after it arrived. */
  readonly beforeUs: number
  readonly afterUs: number
}

/** Entries by their client, in order. */
export function byClient<Entry extends { readonly client: string }>(entries: readonly Entry[]): Map<string, Entry[]> {
  const groups = new Map<string, Entry[]>()
  for (const entry of entries) {
    const own = groups.get(entry.client)
    if (own === undefined) groups.set(entry.client, [entry])
    else own.push(entry)
  }
  return groups
}

/** The logs of all workers as one. */
export function mergeLogs(logs: readonly FleetLog[]): FleetLog {
  return {
    deliveries: logs.flatMap(({ deliveries }) => deliveries).sort((a, b) => a.atUs - b.atUs),
    acceptedUs: logs.flatMap(({ acceptedUs }) => acceptedUs).sort((a, b) => a - b),
    retriedUs: logs.flatMap(({ retriedUs }) => retriedUs).sort((a, b) => a - b),
    failures: logs.flatMap(({ failures }) => failures),
    connections: logs.flatMap(({ connections }) => connections).sort((a, b) => a.openedUs - b.openedUs),
    gaps: logs.flatMap(({ gaps }) => gaps),
    irregularities: logs.flatMap(({ irregularities }) => irregularities),
    publications: new Map(logs.flatMap(({ publications }) => [...publications])),
    users: logs.flatMap(({ users }) => users),
  }
}
