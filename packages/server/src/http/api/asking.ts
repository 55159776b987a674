import type { IncomingMessage } from 'node:http'
import type { ConnectFacts, HookCaller } from '../../hooks/index.js'
import type { ClientCaller } from '../caller.js'

/** A client over HTTP, as hooks see it: it has no session. */
export function hookCallerOf({ identity, address }: ClientCaller): HookCaller {
  return { id: '', userId: identity.userId, claims: identity.claims, address }
}

/** What hooks see of a request, as they see it of an upgrade. */
export function connectFactsOf({ url = '/', headers }: Pick<IncomingMessage, 'url' | 'headers'>): ConnectFacts {
  const [path = '/', query = ''] = url.split('?')
  const texts = Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value])
  return { path, query, headers: Object.fromEntries(texts) as Readonly<Record<string, string>> }
}
