import type { Logger } from '../base/logger.js'
import type { HookCalls } from '../hooks/index.js'
import type { TokenVerifier } from '../identity/index.js'
import type { TrustedProxies } from '../identity/trusted-proxies.js'
import type { Observer } from '../observing/observer.js'
import type { Tracer } from '../observing/tracing/tracer.js'
import type { OriginPolicy } from '../options/access.js'
import type { ResolvedOptions } from '../options/options.js'
import type { Broker } from '../ports/broker.js'
import type { Transport } from '../ports/transport.js'
import type { Emitter } from './emitter.js'
import type { ServerEvents } from './webmq-server.js'

/** The parts of a node. */
export interface ServerNodeParts {
  readonly options: ResolvedOptions
  readonly transport: Transport
  readonly broker: Broker
  readonly verifier: TokenVerifier | undefined
  readonly proxies: TrustedProxies
  /** Absent without any hook. */
  readonly hooks?: HookCalls | undefined
  readonly logger: Logger
  /** Name of this node that clients see; it reveals nothing about the machine. */
  readonly name: string
  readonly events: Pick<Emitter<ServerEvents>, 'emit'>
  /** Absent when nobody wants to know. */
  readonly observer: Observer | undefined
  /** Absent when nobody traces. */
  readonly tracer?: Tracer | undefined
}

/** What changes in the life of a node. */
export interface NodePhase {
  /** Upgrades come from servers of the embedder too, which may be behind a proxy. */
  isAttached: boolean
  /** The node leaves; with a delay, clients may come until the drain begins. */
  isLeaving: boolean
  /** When all connections are closed, by `performance.now`; absent before the drain. */
  drainEndMs: number | undefined
  origins: OriginPolicy
  /** Removes passwords of the broker's address. */
  hideSecrets: (text: string) => string
}
