import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Health } from '../../features/observing/health/readiness.js'
import type { Logger } from '../../kernel/base/logger.js'
import type { HookPort } from '../../kernel/identity/hook-port.js'
import type { TokenVerifier } from '../../kernel/identity/index.js'
import type { TrustedProxies } from '../../kernel/identity/trusted-proxies.js'
import type { LocalHandler, LocalListenOptions, LocalSubscription } from '../../kernel/routing/local-listeners.js'
import type { ResolvedOptions } from '../options/server-options.js'
import type { ApiNode } from './api-node.js'

/** A subscription of the process. */
export type ListenLocally = (pattern: string, handler: LocalHandler, options: LocalListenOptions) => LocalSubscription

export interface MetricsPage {
  readonly contentType: string
  readonly text: string
}

/** The server that HTTP speaks for. Functions are read at each request. */
export interface HttpContext<Node = ApiNode> {
  /** Reloads change them in place. */
  readonly options: ResolvedOptions
  readonly logger: Logger
  readonly verifier: TokenVerifier | undefined
  /** Absent when nobody wants to be asked. Operators are not asked about. */
  readonly hooks: HookPort | undefined
  readonly proxies: TrustedProxies
  readonly demo: { readonly pageFolder: string; readonly clientFolder: string } | undefined
  /** Absent until the node runs. */
  readonly node: () => Node | undefined
  readonly health: () => Health
  readonly metrics: () => Promise<MetricsPage>
  /** See {@link Transport.takeStream}; `undefined` without one. */
  readonly takeStream: (request: IncomingMessage, response: ServerResponse) => boolean | undefined
  /** For the admin page's tail. */
  readonly listen: ListenLocally
}
