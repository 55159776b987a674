import type { Start } from '../actors/listener.js'
import type { LinkFault } from './link.js'

/** The brokers that a schedule can be played on. */
export type BrokerName = 'memory' | 'redis' | 'redis-cluster' | 'nats' | 'rabbitmq' | 'mesh'

/** All that a run is made of, as plain data. Times count from the moment at which the actors start. */
export interface Schedule {
  /** Chance of the actors, too. */
  readonly seed: number
  /** `given`: of an installation that was running already. */
  readonly broker: BrokerName | 'given'
  /** What the draw had in mind, for people. */
  readonly theme: string
  /** Publishing and faults take so long. Everything is healed before. */
  readonly lengthMs: number
  /** Which keys a rule covers. */
  readonly logged: Logged
  readonly server: ServerPlan
  readonly publishers: readonly PublisherPlan[]
  readonly listeners: readonly ListenerPlan[]
  readonly readers: readonly ReaderPlan[]
  /** Of one queue group, which gets every message. Default 0. */
  readonly memberCount?: number
  /** All members are on this node, and come back to it. Default: each begins on another one. */
  readonly memberNode?: number
  /** Keys of streams, each with two writers and two viewers. Default 0. */
  readonly streamCount?: number
  readonly steps: readonly Step[]
}

/** `half`: keys that begin with `log`. */
export type Logged = 'all' | 'half' | 'none'

/** Options of all nodes of a run. */
export interface ServerPlan {
  /** Default: the server's. */
  readonly maxPayloadBytes?: number
  readonly maxOutboxBytes?: number
  readonly historyMaxMessages: number
  readonly brokerHeartbeatMs: number
}

/** Where an actor connects. Numbers are those of nodes. */
export interface Route {
  /** Its first connections, in order. After that any node will do. */
  readonly nodes: readonly number[]
  /** It comes back to its node while that is up, as behind a load balancer with sticky sessions. */
  readonly isSticky: boolean
}

export interface PublisherPlan extends Route {
  readonly keys: readonly string[]
  readonly burstCount: number
  readonly everyMs: number
  /** Default: that of the actor. */
  readonly maxInFlight?: number
  readonly payloadBytes: readonly [min: number, max: number]
  readonly noechoShare: number
  readonly twinShare: number
  readonly againShare: number
  /** Default: at once. */
  readonly againAfterMs?: readonly [min: number, max: number]
}

export interface ListenerPlan extends Route {
  readonly listens: readonly { readonly pattern: string; readonly start: Start }[]
}

export interface ReaderPlan extends Route {
  readonly keys: readonly string[]
  readonly everyMs: number
}

/** A step begins at `atMs` and is over after `forMs`. */
export type Step = { readonly atMs: number; readonly forMs: number } & (
  | NodeStep
  | LinkStep
  | BrokerStep
  | CommandStep
  | ActorStep
)

export interface NodeStep {
  /** SIGKILL and SIGTERM, and a new start at the end of the step; SIGSTOP, and SIGCONT at the end. */
  readonly what: 'kill-node' | 'stop-node' | 'freeze-node'
  readonly node: number
}

/**
 * The link of a node to its broker, to its clients, or to another node of a mesh: links 0, 1, 2 are those of nodes 0 and
 * 1, 0 and 2, 1 and 2.
 */
export type LinkStep = {
  readonly what: 'broker-link' | 'client-link' | 'peer-link'
  readonly link: number
} & LinkFault

export interface BrokerStep {
  /**
   * SIGKILL, or an orderly end, and a new start with all its data at the end; SIGSTOP, and SIGCONT at the end.
   * `wipe-broker`: SIGKILL, and a new start without its data.
   */
  readonly what: 'kill-broker' | 'restart-broker' | 'freeze-broker' | 'wipe-broker'
  /** One of the servers of a cluster. */
  readonly part: number
}

/** A command of the operator does something to the installation. The step ends with it. */
export interface CommandStep {
  readonly what: 'run-command'
  readonly command: number
}

/** What clients do by themselves; all but `stall-…` is done in a moment. */
export interface ActorStep {
  readonly what:
    | 'cut-listener'
    | 'stall-listener'
    | 'move-listener'
    | 'move-listener-during-replay'
    | 'relisten'
    | 'reload-listener'
    | 'cut-publisher'
    | 'stall-publisher'
    | 'cut-writer'
    | 'silence-writer'
    | 'cut-viewer'
    | 'stall-viewer'
    | 'stop-stream'
  readonly actor: number
}

/** Writers of each stream's key, and viewers. */
export const ACTORS_PER_STREAM = 2

/** Keys with and without a rule, in the order in which a publisher takes them. */
export const KEYS = ['log.a.0', 'live.a', 'log.a.1', 'log.b.deep.0', 'live.b.0', 'log', 'live.b.1.deep'] as const

/** Exact, `*` and `#`, overlapping. */
export const PATTERNS = [
  ...KEYS,
  '#',
  'log.#',
  'live.#',
  'log.*.0',
  '*.a',
  '*.*.*',
  '#.0',
  'log.a.*',
  '#.deep.#',
  '*.b.#',
] as const

/** What `--history` says. */
export const LOGGED_PATTERNS: Readonly<Record<Logged, readonly string[]>> = { all: ['#'], half: ['log.#'], none: [] }
