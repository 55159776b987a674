import { totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'
import { MESSAGE_OVERHEAD_BYTES, WebMQError } from 'webmq-client/protocol'
import { invalidOption } from '../../kernel/base/invalid-option.js'
import { allowedAlgorithms, type JwtOptions, secretsOf } from '../../kernel/identity/index.js'
import { isLoopback } from '../../kernel/identity/loopback.js'
import { brokerNameOf } from '../../kernel/ports/broker-address.js'
import { historyRulesOf } from '../../kernel/ports/history-rules.js'
import { unixPathOf } from '../../kernel/ports/unix-socket.js'
import { isIdentifying } from './access.js'
import { logWarnings } from './log-warnings.js'
import { meshPlacesOf } from './mesh-address.js'
import type { ResolvedOptions, ServerOptions, TlsFiles } from './server-options.js'
import { MAX_URGENT_PATTERN_COUNT } from './table/checks.js'
import { webhookEventsOf } from './webhook.js'

export function checkTogether(input: ServerOptions, options: ResolvedOptions): void {
  const { host, insecure, jwt, maxOutboxBytes, maxPayloadBytes, tls } = options
  // The largest message must fit with its frame and header. Otherwise it would close every receiver as a slow consumer.
  const minOutboxBytes = maxPayloadBytes + MESSAGE_OVERHEAD_BYTES
  if (maxOutboxBytes < minOutboxBytes) {
    throw invalidOption(
      `maxOutboxBytes: ${maxOutboxBytes} is less than maxPayloadBytes + ${MESSAGE_OVERHEAD_BYTES} = ${minOutboxBytes}`,
    )
  }
  if (input.tls !== undefined) checkTls(tls)
  const isUnix = unixPathOf(host) !== undefined
  if (options.proxyProtocol && isUnix)
    throw invalidOption('proxyProtocol: not over a Unix socket; let the proxy send X-Forwarded-For')
  if (options.proxyProtocol && options.trustedProxies.length === 0) {
    throw invalidOption('proxyProtocol: name the proxies that speak it (trustedProxies; --trusted-proxy)')
  }
  if (options.adminPort === options.port && options.port !== 0 && !isUnix)
    throw invalidOption(`adminPort: ${options.port} is the port of the server; give it another (--admin-port)`)
  if (input.webhook !== undefined) checkWebhook(options)
  if (input.outbox !== undefined) checkOutbox(options)
  if (options.urgent.length > MAX_URGENT_PATTERN_COUNT)
    throw invalidOption(`urgent: ${options.urgent.length} patterns are more than ${MAX_URGENT_PATTERN_COUNT}`)
  const defect = historyDefect(options)
  if (defect !== undefined) throw invalidOption(defect)
  checkRetain(options)
  if (typeof options.broker === 'string' && brokerNameOf(options.broker) === 'mesh') checkMesh(options.broker, options)
  if (jwt !== undefined) checkTokens(jwt, insecure)
  else if (!insecure && !isLoopback(host) && !isIdentifying(options)) {
    throw insecureOption(
      `everyone who can reach ${host} could listen and publish anything; set a key for tokens (jwt.secret, jwt.publicKey ` +
        'or jwt.jwksUrl; --jwt-secret, --jwt-public-key or --jwks), identify clients by a hook or a webhook (connect), or ' +
        'allow it with insecure (--insecure)',
    )
  }
}

function checkTls(tls: TlsFiles | undefined): void {
  const [certCount, keyCount] = [tls?.certFile ?? [], tls?.keyFile ?? []].map(({ length }) => length)
  if (certCount === 0 || keyCount === 0) {
    // An empty `tls` usually means an unset variable. It must not serve without encryption.
    throw invalidOption('tls: needs both tls.certFile (--tls-cert) and tls.keyFile (--tls-key)')
  }
  if (certCount !== keyCount) {
    throw invalidOption(
      `tls: every certificate needs its key, in the same order; got ${certCount} tls.certFile (--tls-cert) and ${keyCount} tls.keyFile (--tls-key)`,
    )
  }
}

function checkMesh(broker: string, { mesh, insecure }: ResolvedOptions): void {
  const { peers, listen } = meshPlacesOf(broker, mesh?.listen)
  const remote = [...peers, listen].find(({ host }) => !isLoopback(host))
  if (mesh?.secret !== undefined || insecure || remote === undefined) return
  throw insecureOption(
    `mesh: everyone who can reach the node at ${remote.host} could publish and receive anything; set a secret that all ` +
      'nodes share (mesh.secret; --mesh-secret), or allow it with insecure (--insecure)',
  )
}

/**
 * The log of a broker between machines carries the retained messages again and again, before it drops them. More of them
 * would fill it with nothing else.
 */
const MAX_RETAINED_SHARE = 1 / 4

function checkRetain(options: ResolvedOptions): void {
  if (options.retain.length === 0) return
  const { broker, historyMaxMessages, historyMaxBytes, retainMaxKeys, retainMaxBytes } = options
  const name = typeof broker === 'string' ? brokerNameOf(broker) : undefined
  if (name === 'mesh') throw invalidOption('retain: each node of a mesh has a log of its own; use another broker')
  if (historyMaxMessages === 0 || historyMaxBytes === 0)
    throw invalidOption('retain: needs a log (historyMaxMessages, historyMaxBytes)')
  if (name === undefined || name === 'memory') return
  const maxKeys = Math.floor(historyMaxMessages * MAX_RETAINED_SHARE)
  const maxBytes = Math.floor(historyMaxBytes * MAX_RETAINED_SHARE)
  if (retainMaxKeys > maxKeys)
    throw invalidOption(`retainMaxKeys: ${retainMaxKeys} is more than a quarter of historyMaxMessages, ${maxKeys}`)
  if (retainMaxBytes > maxBytes)
    throw invalidOption(`retainMaxBytes: ${retainMaxBytes} is more than a quarter of historyMaxBytes, ${maxBytes}`)
}

function checkWebhook({ webhook, insecure }: ResolvedOptions): void {
  // An empty one usually means an unset variable. It must not open the server to everyone.
  if (webhook?.url === undefined) throw invalidOption('webhook: needs webhook.url (--webhook)')
  if (!insecure) assertEncrypted('webhook.url', webhook.url, 'give the answers')
}

/** @throws {WebMQError} `E_INSECURE`: the address is plain `http://` beyond this machine. */
function assertEncrypted(name: string, url: string, harm: string): void {
  const { protocol, hostname } = new URL(url)
  if (protocol !== 'http:' || isLoopback(hostname)) return
  throw insecureOption(
    `${name}: an attacker between this machine and ${hostname} could ${harm}; use https://, or allow it with insecure (--insecure)`,
  )
}

/** Those of which PostgreSQL's library makes TLS or nothing. */
const ENCRYPTED_MODES: ReadonlySet<string> = new Set(['require', 'verify-ca', 'verify-full'])

function checkOutbox({ outbox, insecure }: ResolvedOptions): void {
  // An empty one usually means an unset variable.
  if (outbox?.url === undefined) throw invalidOption('outbox: needs outbox.url (--outbox)')
  const { hostname, searchParams } = new URL(outbox.url)
  // As the library reads it: the last one counts, `host` before the name, and without one the variable PGHOST.
  const last = (name: string) => searchParams.getAll(name).at(-1) ?? ''
  const host = last('host') || hostname
  const isSocket = host.startsWith('/') || /^%2f/i.test(host)
  if (insecure || isSocket || isLoopback(host) || ENCRYPTED_MODES.has(last('sslmode'))) return
  throw insecureOption(
    `outbox.url: an attacker between this machine and ${host || 'PGHOST'} could read and insert messages; add ` +
      'sslmode=verify-full, or allow it with insecure (--insecure)',
  )
}

function checkTokens(jwt: JwtOptions, insecure: boolean): void {
  const sources = [jwt.secret, jwt.publicKey, jwt.jwksUrl].filter((source) => source !== undefined)
  if (sources.length === 0) {
    // An empty `jwt` usually means an unset variable. It must not open the server to everyone.
    throw invalidOption(
      'jwt: needs a jwt.secret (--jwt-secret), a jwt.publicKey (--jwt-public-key) or a jwt.jwksUrl (--jwks)',
    )
  }
  allowedAlgorithms(jwt)
  if (jwt.jwksUrl !== undefined && !insecure) assertEncrypted('jwt.jwksUrl', jwt.jwksUrl, 'insert keys')
}

/** The options open the server to everyone, or to an attacker on the network. */
function insecureOption(detail: string): WebMQError {
  return new WebMQError('E_INSECURE', { detail })
}

/** RFC 7518 §3.2: an HS256 key is at least as long as its hash. */
const GOOD_SECRET_BYTES = 32
/** Most often the unit was left out. */
const SHORT_MS = 1_000
const HARM_OF_SHORT_TIMES = {
  drainTimeoutMs: 'all clients come back to the other nodes at once',
  drainDelayMs: 'no balancer notices it',
  pingIntervalMs: 'silent clients are pinged that often',
} as const

/** Warnings about risky but allowed options; one sentence each. */
export function warningsOf(options: ResolvedOptions): readonly string[] {
  const warnings: string[] = [...logWarnings(options)]
  const { host, jwt, mesh, webhook } = options
  if (secretsOf(jwt ?? {}).some((secret) => Buffer.byteLength(secret) < GOOD_SECRET_BYTES)) {
    warnings.push(
      `jwt.secret has fewer than ${GOOD_SECRET_BYTES} bytes: anyone with a token can find it by trying; create one with openssl rand -base64 32`,
    )
  }
  if (mesh?.secret !== undefined && Buffer.byteLength(mesh.secret) < GOOD_SECRET_BYTES) {
    warnings.push(
      `mesh.secret has fewer than ${GOOD_SECRET_BYTES} bytes: it can be found by trying; create one with openssl rand -base64 32`,
    )
  }
  if (mesh !== undefined && typeof options.broker === 'string' && brokerNameOf(options.broker) !== 'mesh') {
    warnings.push('mesh.listen and mesh.secret do nothing with this broker: they are for --broker mesh://…')
  }
  for (const [name, harm] of Object.entries(HARM_OF_SHORT_TIMES)) {
    const ms = options[name as keyof typeof HARM_OF_SHORT_TIMES]
    if (ms > 0 && ms < SHORT_MS) warnings.push(`${name} is ${ms} ms: ${harm}; ${ms}s are ${ms} seconds`)
  }
  if (options.trustedProxies.some((range) => range.endsWith('/0'))) {
    warnings.push('trustedProxies contains all addresses: every client can claim any address')
  }
  if (webhook !== undefined && webhook.secret === undefined) {
    warnings.push(
      'webhook.secret is not set: whoever finds the address of the webhook can send it events; create one with openssl rand -base64 32',
    )
  }
  for (const name of ['published', 'occupancy'] as const) {
    if ((webhook?.[name]?.length ?? 0) > 0 && !webhookEventsOf(webhook ?? {}).includes(name))
      warnings.push(`webhook.${name} does nothing without the event ${name} in webhook.events (--webhook-events)`)
  }
  if (jwt === undefined && !isLoopback(host) && !isIdentifying(options)) {
    warnings.push(`anonymous access on ${host}: everyone who can reach it may listen and publish anything`)
  }
  return warnings
}

/** What a process may take of a machine or container, in bytes. */
export interface Room {
  readonly heapBytes: number
  readonly memoryBytes: number
}

type HistorySize = Pick<ResolvedOptions, 'broker' | 'history' | 'retain' | 'historyMaxMessages' | 'historyMaxBytes'>

/** A key of eight letters in the heap, measured; longer keys take more. Payloads are outside the heap. */
const KEY_BYTES = 34
const MIB = 1024 ** 2

/** Why the log of a node, once it is full, ends the process; `undefined` when nothing says so. */
export function historyDefect(options: HistorySize, room: Room = roomHere()): string | undefined {
  const { broker, historyMaxMessages, historyMaxBytes } = options
  const isEmbedded = typeof broker === 'string' && brokerNameOf(broker) === 'memory'
  if (historyRulesOf(options, isEmbedded).isEmpty || historyMaxMessages === 0 || historyMaxBytes === 0) return undefined
  const heapMib = Math.floor(room.heapBytes / MIB)
  if (historyMaxMessages * KEY_BYTES > room.heapBytes)
    return `historyMaxMessages: the keys of ${historyMaxMessages} messages do not fit the heap, ${heapMib} MiB; keep fewer, or give Node more (NODE_OPTIONS=--max-old-space-size=…)`
  if (historyMaxBytes > room.memoryBytes)
    return `historyMaxBytes: ${historyMaxBytes} is more than the memory here, ${Math.floor(room.memoryBytes / MIB)} MiB`
  return undefined
}

export function roomHere(): Room {
  // 0 or more than any machine has: there is no limit.
  const limit = process.constrainedMemory() || Number.POSITIVE_INFINITY
  return { heapBytes: getHeapStatistics().heap_size_limit, memoryBytes: Math.min(limit, totalmem()) }
}
