import type { OwnHosts } from '../../kernel/identity/origin.js'
import type { ResolvedOptions } from './server-options.js'
import { webhookEventsOf } from './webhook.js'

export interface OriginPolicy {
  /** Origins that may connect in addition to the server's own. */
  readonly origins: readonly string[]
  /** Host names under which the server's own pages may connect. */
  readonly ownHosts: OwnHosts
}

/** Pages of development servers on this machine. Names that only resolve to it are others' (DNS rebinding). */
const LOOPBACK_PAGES = ['http://localhost:*', 'http://127.0.0.1:*', 'http://[::1]:*']

/** Those that have TLS themselves reach a server with TLS. */
const SECURE_LOOPBACK_PAGES = LOOPBACK_PAGES.map((page) => page.replace('http:', 'https:'))

type IdentityOptions = Pick<ResolvedOptions, 'jwt' | 'hooks' | 'webhook' | 'insecure'>

/**
 * Whether tokens, a hook or a webhook say who a client is, so that a client of which they say nothing may do nothing. A file of hooks
 * that is not loaded yet counts.
 */
export function isIdentifying({ jwt, hooks, webhook }: Omit<IdentityOptions, 'insecure'>): boolean {
  if (jwt !== undefined || typeof hooks === 'string' || hooks?.connect !== undefined) return true
  return webhook !== undefined && webhookEventsOf(webhook).includes('connect')
}

/** Whether nothing but the loopback address protects the server: anonymous clients of this machine alone may connect. */
export function isForThisMachineOnly(options: IdentityOptions): boolean {
  return !isIdentifying(options) && !options.insecure
}

export function originPolicyOf(options: IdentityOptions & Pick<ResolvedOptions, 'origins' | 'tls'>): OriginPolicy {
  const { origins, tls } = options
  if (!isForThisMachineOnly(options)) return { origins, ownHosts: 'all' }
  const pages = tls === undefined ? LOOPBACK_PAGES : [...LOOPBACK_PAGES, ...SECURE_LOOPBACK_PAGES]
  return { origins: [...origins, ...pages], ownHosts: 'loopback' }
}
