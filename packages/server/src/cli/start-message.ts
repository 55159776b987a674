import { isLoopback } from '../identity/loopback.js'
import { VERSION } from '../node/version.js'
import type { ResolvedOptions } from '../options/options.js'
import { brokerNameOf, withoutPasswords } from '../ports/broker-address.js'
import { paint, type Terminal } from './terminal.js'

/**
 * What the server prints once it listens: a few lines for people on a terminal, else a line that ends with the
 * address, one with that of the broker if it is elsewhere, and one with that of the demo page if there is one.
 *
 * @param url Address of the WebSocket endpoint, `ws://127.0.0.1:8080/ws`.
 */
export function describeStart(url: string, options: ResolvedOptions, { stdout, env }: Terminal): string {
  const httpUrl = new URL(url.replace(/^ws/, 'http'))
  const demoUrl = options.demo ? new URL('/', httpUrl).href : undefined
  if (stdout.isTTY !== true) {
    const broker = options.broker === 'memory' ? '' : `Broker: ${describeBroker(options)}\n`
    return `WebMQ ${VERSION} listens on ${url}\n${broker}${demoUrl === undefined ? '' : `Demo page: ${demoUrl}\n`}`
  }
  const lines: readonly (readonly [string, string])[] = [
    ['WebSocket', paint(url, 'cyan', stdout, env)],
    ...(demoUrl === undefined ? [] : [['Demo', paint(demoUrl, 'cyan', stdout, env)] as const]),
    ['Health', new URL('/health', httpUrl).href],
    ['Broker', describeBroker(options)],
    ['Access', describeAccess(options)],
    ['Pages', describeOrigins(options)],
  ]
  const title = paint(`WebMQ ${VERSION}`, 'bold', stdout, env)
  const body = lines.map(([name, text]) => `    ${paint(name.padEnd(11), 'dim', stdout, env)}${text}\n`).join('')
  return `\n  ${title} is running\n\n${body}\n    Ctrl-C stops it; --help lists what can be set.\n\n`
}

function describeBroker({ broker }: ResolvedOptions): string {
  if (typeof broker !== 'string') return broker.name
  return broker === 'memory' ? 'memory: this node alone' : `${brokerNameOf(broker)}, ${withoutPasswords(broker)}`
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
