import type { Server as NodeHttpServer } from 'node:http'
import type { Logger } from '../base/logger.js'
import type { HookCalls, Webhook } from '../hooks/index.js'
import type { TokenVerifier } from '../identity/index.js'
import type { AuditLog } from '../observing/audit/log.js'
import type { TransportChoice } from '../observing/health/readiness.js'
import type { Observer } from '../observing/observer.js'
import type { ResolvedOptions } from '../options/options.js'
import type { Broker } from '../ports/broker.js'
import type { Transport } from '../ports/transport.js'
import type { TlsCertificate } from '../ports/transport-options.js'

/** A transport, and why it was chosen. */
export interface ChosenTransport {
  readonly transport: Transport
  readonly choice: TransportChoice
}

/** Asks for a transport. */
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
  /** Absent without any hook. */
  readonly hooks?: HookCalls | undefined
  readonly webhook?: Webhook | undefined
  /** Are told what sessions do. */
  readonly observers?: readonly Observer[]
  readonly audit?: AuditLog | undefined
  readonly demo: { readonly pageFolder: string; readonly clientFolder: string } | undefined
  createTransport(options: ResolvedOptions, request: TransportRequest): Promise<ChosenTransport>
  createBroker(options: ResolvedOptions): Promise<Broker>
}
