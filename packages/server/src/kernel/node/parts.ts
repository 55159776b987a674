import type { Server as NodeHttpServer } from 'node:http'
import type { OriginPolicy } from '../../doors/options/access.js'
import type { ResolvedOptions } from '../../doors/options/server-options.js'
import type { Webhook } from '../../features/hooks/webhooks/webhook.js'
import type { AuditLog } from '../../features/observing/audit/log.js'
import type { TransportChoice } from '../../features/observing/health/readiness.js'
import type { Observer } from '../../features/observing/observer.js'
import type { Tracer } from '../../features/observing/tracing/tracer.js'
import type { Logger } from '../base/logger.js'
import type { HookPort } from '../identity/hook-port.js'
import type { TokenVerifier } from '../identity/index.js'
import type { TrustedProxies } from '../identity/trusted-proxies.js'
import type { Broker } from '../ports/broker.js'
import type { Transport } from '../ports/transport.js'
import type { TlsCertificate } from '../ports/transport-options.js'
import type { Emitter, ServerEvents } from './emitter.js'
import type { DatabaseOutbox } from './features.js'

export interface ChosenTransport {
  readonly transport: Transport
  readonly choice: TransportChoice
}

export interface TransportRequest {
  /** Gets the requests that are no upgrades. */
  readonly httpServer: NodeHttpServer
  /** Present: the transport serves TLS. */
  readonly certificates: readonly TlsCertificate[] | undefined
  /** The server whose upgrades it takes first; absent when it listens first. */
  readonly attachTo: NodeHttpServer | undefined
}

/** The parts of a {@link Server}. Transport and broker are created when they are needed. */
export interface ServerParts {
  readonly options: ResolvedOptions
  readonly logger: Logger
  readonly verifier: TokenVerifier | undefined
  /** Prepares other keys for `verifier`, see {@link ReloadableVerifier.prepare}. Absent without tokens. */
  readonly prepareKeys?: ((options: ResolvedOptions) => () => void) | undefined
  readonly hooks?: HookPort | undefined
  readonly webhook?: Webhook | undefined
  /** Are told what sessions do. */
  readonly observers?: readonly Observer[]
  readonly audit?: AuditLog | undefined
  readonly demo: { readonly pageFolder: string; readonly clientFolder: string } | undefined
  createTransport(options: ResolvedOptions, request: TransportRequest): Promise<ChosenTransport>
  createBroker(options: ResolvedOptions): Promise<Broker>
  /** Loads its library. Resolves to nothing without the option. */
  createOutbox?(options: ResolvedOptions): Promise<DatabaseOutbox | undefined>
}

export interface ServerNodeParts extends Pick<ServerParts, 'options' | 'verifier' | 'hooks' | 'logger'> {
  readonly transport: Transport
  readonly broker: Broker
  readonly outbox?: DatabaseOutbox | undefined
  readonly proxies: TrustedProxies
  /** Name of this node that clients see; it reveals nothing about the machine. */
  readonly name: string
  readonly events: Pick<Emitter<ServerEvents>, 'emit'>
  readonly observer: Observer | undefined
  readonly tracer?: Tracer | undefined
  /** Present: the webhook is told of occupied and vacated patterns. */
  readonly occupancy?: Webhook['occupancy']
}

/** What changes in the life of a node. */
export interface NodePhase {
  /** The node leaves; with a delay, clients may come until the drain begins. */
  isLeaving: boolean
  /** When all connections are closed, by `performance.now`; absent before the drain. */
  drainEndMs: number | undefined
  origins: OriginPolicy
  /** Removes passwords of the broker's address. */
  hideSecrets: (text: string) => string
}
