import { isLoopback } from '../loopback.js'
import type { ResolvedOptions } from '../options.js'
import { VERSION } from '../version.js'
import { paint, type Terminal } from './terminal.js'

/**
 * What the server prints once it listens: a few lines for people on a terminal, else one line that ends with the address.
 *
 * @param url Address of the WebSocket endpoint, `ws://127.0.0.1:8080/ws`.
 */
export function describeStart(url: string, options: ResolvedOptions, { stdout, env }: Terminal): string {
  if (stdout.isTTY !== true) return `WebMQ ${VERSION} listens on ${url}\n`
  const httpUrl = new URL(url.replace(/^ws/, 'http'))
  const lines: readonly (readonly [string, string])[] = [
    ['WebSocket', paint(url, 'cyan', stdout, env)],
    ...(options.demo ? [['Demo', paint(new URL('/', httpUrl).href, 'cyan', stdout, env)] as const] : []),
    ['Health', new URL('/health', httpUrl).href],
    ['Access', describeAccess(options)],
    ['Pages', describeOrigins(options)],
  ]
  const title = paint(`WebMQ ${VERSION}`, 'bold', stdout, env)
  const body = lines.map(([name, text]) => `    ${paint(name.padEnd(11), 'dim', stdout, env)}${text}\n`).join('')
  return `\n  ${title} is running\n\n${body}\n    Ctrl-C stops it; --help lists what can be set.\n\n`
}

function describeAccess({ host, jwt }: ResolvedOptions): string {
  if (jwt !== undefined) return 'with a token only; each listens and publishes as its grants say'
  const who = isLoopback(host) ? 'everyone on this machine' : `everyone who reaches ${host}`
  return `no tokens: ${who} may listen and publish anything`
}

function describeOrigins({ origins }: ResolvedOptions): string {
  if (origins.includes('*')) return 'of any origin may connect'
  const others = origins.length === 0 ? ' (--origin lets in others)' : `, and ${origins.join(', ')}`
  return `of this server${others}`
}
