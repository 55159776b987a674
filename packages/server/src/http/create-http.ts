import type { Logger } from '../base/logger.js'
import type { HookCalls } from '../hooks/index.js'
import type { TokenVerifier } from '../identity/index.js'
import { isOriginAllowed } from '../identity/origin.js'
import type { TrustedProxies } from '../identity/trusted-proxies.js'
import type { Health } from '../observing/health/readiness.js'
import { isForThisMachineOnly, originPolicyOf } from '../options/access.js'
import type { ResolvedOptions } from '../options/options.js'
import { withoutSecrets } from '../options/without-secrets.js'
import { AdminPage } from './admin/page.js'
import type { ListenLocally } from './admin/tail.js'
import { AdminServer } from './admin-server.js'
import { HttpApi } from './api/api.js'
import type { ApiNode } from './api/node.js'
import { Callers } from './caller.js'
import { HttpFrontend } from './frontend.js'
import type { MetricsSource } from './metric-spec.js'
import { Metrics } from './metrics.js'

/** What serves HTTP for a server. */
export interface ServerHttp {
  /** Everything that is no upgrade on the server's port. */
  readonly frontend: HttpFrontend
  /** Present with `adminPort`. */
  readonly admin: AdminServer | undefined
}

/** The server that HTTP speaks for. Functions are read at each request. */
export interface HttpContext {
  /** Reloads change them in place. */
  readonly options: ResolvedOptions
  readonly logger: Logger
  readonly verifier: TokenVerifier | undefined
  readonly hooks: HookCalls | undefined
  readonly proxies: TrustedProxies
  readonly demo: { readonly pageFolder: string; readonly clientFolder: string } | undefined
  /** Absent until the node runs. */
  readonly node: () => ApiNode | undefined
  readonly health: () => Health
  readonly metrics: () => MetricsSource | undefined
  readonly servesStreams: () => boolean
  /** For the admin page's tail. */
  readonly listen: ListenLocally
}

/** Creates the HTTP side of a server: probes, metrics, demo page, API, admin port. Nothing listens yet. */
export function createHttp(context: HttpContext): ServerHttp {
  const { options, logger, verifier, hooks, proxies, demo, node, health, servesStreams } = context
  const metrics = new Metrics(context.metrics)
  const isAllowed = (origin: string | undefined, host: string | undefined) => {
    const { origins, ownHosts } = originPolicyOf(options)
    return isOriginAllowed(origin, host, origins, ownHosts)
  }
  const callers = new Callers({
    apiKeys: () => options.apiKeys,
    verifier,
    revocations: () => node()?.cluster.revocations,
    isOriginAllowed: isAllowed,
    isForThisMachineOnly: isForThisMachineOnly(options),
    proxies,
  })
  const routes = new HttpApi({
    callers,
    node,
    hooks,
    insecure: options.insecure,
    limits: options,
    work: options,
    config: () => withoutSecrets(options),
    bodyTimeoutMs: options.messageTimeoutMs,
    logger,
  })
  const probes = { path: options.path, health, isOriginAllowed: isAllowed, metrics: () => metrics.page(), logger }
  const { adminPort, adminHost } = options
  const audience = () => options.metrics
  const admin =
    adminPort === undefined
      ? undefined
      : new AdminServer({
          ...probes,
          api: { routes, scope: 'all' },
          ...(options.apiKeys.length === 0 ? undefined : { admin: new AdminPage(callers, context.listen) }),
          host: adminHost,
          port: adminPort,
          get metricsAudience() {
            return audience()
          },
        })
  const frontend = new HttpFrontend({
    ...probes,
    get metricsAudience() {
      return adminPort === undefined ? audience() : 'off'
    },
    hasEndpoint: true,
    ...(options.sse === 'on' ? { ssePath: options.ssePath } : undefined),
    servesStreams,
    allowsCredentials: options.tokenCookie !== undefined,
    api: { routes, scope: admin === undefined ? 'all' : 'clients' },
    ...(demo === undefined ? undefined : { demo }),
  })
  return { frontend, admin }
}
