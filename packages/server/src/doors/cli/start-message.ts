import { isLoopback } from '../../kernel/identity/loopback.js'
import { VERSION } from '../../kernel/node/version.js'
import { brokerNameOf, withoutPasswords } from '../../kernel/ports/broker-address.js'
import { unixPathOf } from '../../kernel/ports/unix-socket.js'
import { isForThisMachineOnly, isIdentifying } from '../options/access.js'
import type { ResolvedOptions } from '../options/server-options.js'
import { paint, type Terminal } from './terminal.js'

/**
 * The text that the server prints once it listens. On a terminal this is a short summary. Otherwise it is a line that
 * ends with the address, then optional lines for a remote broker and the demo page.
 *
 * @param url Address of the WebSocket endpoint, `ws://127.0.0.1:8080/ws`.
 * @param adminUrl Address of the admin port, `http://127.0.0.1:9090`.
 */
export function describeStart(
  url: string,
  options: ResolvedOptions,
  { stdout, env }: Terminal,
  adminUrl?: string,
): string {
  const socket = unixPathOf(options.host)
  const httpUrl = socket === undefined ? new URL(url.replace(/^ws/, 'http')) : undefined
  const demoUrl = options.demo && httpUrl !== undefined ? new URL('/', httpUrl).href : undefined
  const healthUrl = new URL('/health', adminUrl ?? httpUrl ?? 'http://localhost').href
  if (stdout.isTTY !== true) {
    const broker = options.broker === 'memory' ? '' : `Broker: ${describeBroker(options)}\n`
    const access = isForThisMachineOnly(options) ? `Access: ${describeAccess(options)}\n` : ''
    const demo = demoUrl === undefined ? '' : `Demo page: ${demoUrl}\n`
    return `WebMQ ${VERSION} listens on ${url}\n${broker}${access}${demo}`
  }
  const lines: readonly (readonly [string, string])[] = [
    ['WebSocket', paint(url, 'cyan', stdout, env)],
    ...(demoUrl === undefined ? [] : [['Demo', paint(demoUrl, 'cyan', stdout, env)] as const]),
    [
      'Health',
      adminUrl === undefined && socket !== undefined ? `curl --unix-socket ${socket} ${healthUrl}` : healthUrl,
    ],
    ['Broker', describeBroker(options)],
    ['Access', describeAccess(options)],
    ['Pages', describeOrigins(options)],
  ]
  const title = paint(`WebMQ ${VERSION}`, 'bold', stdout, env)
  const body = lines.map(([name, text]) => `    ${paint(name.padEnd(11), 'dim', stdout, env)}${text}\n`).join('')
  return `\n  ${title} is running\n\n${body}\n    Press Ctrl-C to stop; --help-all lists the options.\n\n`
}

function describeBroker({ broker }: ResolvedOptions): string {
  if (typeof broker !== 'string') return broker.name
  return broker === 'memory' ? 'memory (one node only)' : `${brokerNameOf(broker)}, ${withoutPasswords(broker)}`
}

function describeAccess(options: ResolvedOptions): string {
  const { host, jwt } = options
  if (jwt !== undefined) return 'with a token; its grants say which keys a client may listen and publish to'
  if (isIdentifying(options)) return 'a hook says which keys a client may listen and publish to'
  const local = 'everyone on this machine, or who comes through a proxy or tunnel on it that does not say so,'
  const who = isLoopback(host) ? local : `everyone who can reach ${host}`
  return `no tokens: ${who} may listen and publish anything`
}

function describeOrigins(options: ResolvedOptions): string {
  const { origins } = options
  if (origins.includes('*')) return 'of any origin'
  const others = origins.length === 0 ? ' (--origin allows others)' : `, and ${origins.join(', ')}`
  return `of ${isForThisMachineOnly(options) ? 'this machine' : 'this server'}${others}`
}
