import { isLoopback } from '../../kernel/identity/loopback.js'
import { AdminPage } from './admin/page.js'
import type { HttpApi } from './api/api.js'
import type { RoutedNode } from './api/handlers/handler.js'
import { Callers } from './caller.js'
import type { HttpContext } from './context.js'
import { HttpFrontend } from './frontend.js'

export interface ServerHttp {
  /** Everything that is no upgrade on the server's port. */
  readonly frontend: HttpFrontend
  /**
   * Present with `adminPort`: serves `/health`, `/ready`, `/metrics` and the whole HTTP API on a port of its own, with sockets
   * and limits of its own, so that clients cannot keep probes out. Whoever reaches an address beyond loopback may read everything.
   */
  readonly admin: HttpFrontend | undefined
}

/** Few ask at the admin port, so it has few places. An operator may follow a pattern for long. */
const ADMIN_LIMITS = { maxConnections: 128, reservedForLoopback: 16, maxPerAddress: 16, maxBusyMs: 3_600_000 }

/** Creates the HTTP side of a server: probes, metrics, demo page, API, admin port. Nothing listens yet. */
export function createHttp(context: HttpContext<RoutedNode>): ServerHttp {
  const { options } = context
  const callers = new Callers(context)
  let api: HttpApi | undefined
  /** The API is loaded for its first request, or for the next one if that failed. */
  const respond: HttpApi['respond'] = async (...request) => {
    if (api === undefined) {
      const { HttpApi } = await import('./api/api.js')
      api ??= new HttpApi({ ...context, callers })
    }
    await api.respond(...request)
  }
  const shared = { ...context, callers }
  const { adminPort, adminHost } = options
  const adminContext = {
    ...shared,
    get metricsAudience() {
      return options.metrics === 'local' && !isLoopback(adminHost) ? 'all' : options.metrics
    },
    hasEndpoint: false,
    demo: undefined,
    api: { respond, scope: 'all' as const },
    ...(options.apiKeys.length === 0 ? undefined : { admin: new AdminPage(callers, context.listen) }),
    limits: ADMIN_LIMITS,
  }
  const admin = adminPort === undefined ? undefined : new HttpFrontend(adminContext)
  const frontend = new HttpFrontend({
    ...shared,
    get metricsAudience() {
      return adminPort === undefined ? options.metrics : 'off'
    },
    hasEndpoint: true,
    api: { respond, scope: admin === undefined ? 'all' : 'clients' },
  })
  return { frontend, admin }
}
