import { MESSAGE_OVERHEAD_BYTES, WebMQError } from 'webmq-client/protocol'
import type { MetricsAudience } from '../http/local-request.js'
import { allowedAlgorithms, type JwtOptions } from '../identity/index.js'
import { isLoopback } from '../identity/loopback.js'
import type { LogFormat, Logger, LogLevel } from '../logger.js'
import type { Broker } from '../ports/broker.js'
import { brokerNameOf } from '../ports/broker-address.js'
import { assertBroker } from './assert-broker.js'
import { didYouMean } from './closest-name.js'
import { meshPlacesOf } from './mesh-address.js'
import { defaultOf, type OptionSpec } from './spec.js'
import { OPTIONS } from './table.js'
import { validateOption } from './values.js'

/**
 * Options of {@link createServer}, all with a default. `docs/configuration.md` says for each which failure it prevents;
 * `OPTIONS` is the table of defaults and ranges.
 */
export interface ServerOptions {
  /** Address to bind; default `127.0.0.1`. */
  readonly host?: string | undefined
  /** Port to bind, 0 for a free one; default 8080. */
  readonly port?: number | undefined
  /** Path of the WebSocket endpoint; default `/ws`. */
  readonly path?: string | undefined
  /** Serves the demo page at `/`; default false. */
  readonly demo?: boolean | undefined
  /** PEM files, to serve `wss://`; needs the `uws` transport. */
  readonly tls?: TlsFiles | undefined
  /** Who owns the sockets; default `native`. */
  readonly transport?: TransportName | undefined
  /** I/O threads of the native transport; default one less than cores, at least 1. */
  readonly threads?: number | undefined
  /** For which a busy I/O thread may hold publications back to share writes; default 10, 0 turns it off. */
  readonly flushIntervalMs?: number | undefined
  /**
   * What carries messages between nodes: `memory`, the address of a broker (`amqp://…`, `redis://…`, `nats://…`, `mesh://…`), or one of
   * your own, which `webmq-conformance` proves; default `memory`. A broker serves one server, which starts and stops it.
   */
  readonly broker?: string | Broker | undefined
  /** Name under which the nodes of one system meet at the broker; default `webmq`. */
  readonly brokerNamespace?: string | undefined
  /** For which a publish or a listen waits for the broker; default 5,000. */
  readonly brokerTimeoutMs?: number | undefined
  /** For which a starting server tries to reach the broker; default 30,000. */
  readonly brokerStartTimeoutMs?: number | undefined
  /** Interval of heartbeats to the broker; default 5,000. */
  readonly brokerHeartbeatMs?: number | undefined
  /** Bytes of messages that may wait for the broker; default 64 MiB. */
  readonly brokerMaxPendingBytes?: number | undefined
  /** How this node takes part in a mesh, with `mesh://…`. */
  readonly mesh?: MeshOptions | undefined
  /** Compresses messages for clients that offer permessage-deflate; default false. */
  readonly compression?: boolean | undefined
  /** Smallest message that is compressed, its header included; default 1,024. */
  readonly compressionThresholdBytes?: number | undefined
  /** Largest payload; default 256 KiB. */
  readonly maxPayloadBytes?: number | undefined
  /** Bytes that may wait for one connection, at least `maxPayloadBytes` + 4,096; default 1 MiB. */
  readonly maxOutboxBytes?: number | undefined
  /** Largest request head; default 8 KiB. */
  readonly maxHeaderBytes?: number | undefined
  /** Connections held at once, 0 for what the descriptor limit allows; default 0. */
  readonly maxConnections?: number | undefined
  /** Patterns per connection; default 128. */
  readonly maxListensPerConnection?: number | undefined
  /** From accept to the end of the handshake; default 5,000. */
  readonly handshakeTimeoutMs?: number | undefined
  /** Until a token must have come, when one is required; default 10,000. */
  readonly authTimeoutMs?: number | undefined
  /** Silence after which a ping is sent; default 25,000. */
  readonly pingIntervalMs?: number | undefined
  /** Silence after the ping that drops the connection; default 10,000. */
  readonly pingTimeoutMs?: number | undefined
  /** Until a close frame must be answered; default 5,000. */
  readonly closeTimeoutMs?: number | undefined
  /** Over which connections are closed when the server drains; default 25,000. */
  readonly drainTimeoutMs?: number | undefined
  /**
   * Which keys are logged, and what of each: `chat.#=100,10m`, the newest 100 messages of each key, for ten minutes. Default: with the
   * memory broker all keys, otherwise none.
   */
  readonly history?: readonly string[] | undefined
  /** Messages of the log that a node and its broker keep; default 10,000. */
  readonly historyMaxMessages?: number | undefined
  /** Bytes of the log that a node and its broker keep; default 16 MiB. */
  readonly historyMaxBytes?: number | undefined
  /** Time for which message ids are remembered; default 120,000. */
  readonly dedupeWindowMs?: number | undefined
  /** Message ids that are remembered at most; default 100,000. */
  readonly dedupeMaxIds?: number | undefined
  /** Within which the members of a node that has crashed are gone on the others; default 15,000. */
  readonly presenceTtlMs?: number | undefined
  /** For which a member stays whose connection was lost; default 5,000. */
  readonly presenceLingerMs?: number | undefined
  /** Largest data of a member of presence; default 4 KiB. */
  readonly presenceMaxDataBytes?: number | undefined
  /** Members of one key; default 1,000. */
  readonly presenceMaxMembersPerKey?: number | undefined
  /** Keys at which a connection may be present, and as many that it may watch; default 128. */
  readonly presenceMaxKeysPerConnection?: number | undefined
  /** Members of all keys and nodes; default 100,000. */
  readonly presenceMaxMembers?: number | undefined
  /** Origins whose pages may connect beside the server's own; default none. */
  readonly origins?: readonly string[] | undefined
  /** Allows anonymous access beyond loopback; default false. */
  readonly insecure?: boolean | undefined
  /** How tokens are verified; without it everyone is anonymous and may do anything. */
  readonly jwt?: JwtOptions | undefined
  /** Least serious line that is logged; default `info`. Ignored with a `logger`. */
  readonly logLevel?: LogLevel | undefined
  /** How lines look; default `auto`. Ignored with a `logger`. */
  readonly logFormat?: LogFormat | undefined
  /** Who may read `/metrics`: `local`, those on this machine; `all`; or `off`, nobody. Default `local`. */
  readonly metrics?: MetricsAudience | undefined
  /** Gets the log lines, instead of standard error. A pino logger fits. */
  readonly logger?: Logger | undefined
}

/** PEM files of a TLS server. */
export interface TlsFiles {
  /** Certificate chain. */
  readonly certFile: string
  readonly keyFile: string
}

/** How a node takes part in a mesh. */
export interface MeshOptions {
  /** Where other nodes reach this one, `host:port`; default `127.0.0.1:7400`, port 0 for a free one. */
  readonly listen?: string | undefined
  /** What all nodes share; needed unless all are on this machine. */
  readonly secret?: string | undefined
}

/** A transport that comes with the server. */
export type TransportName = 'native' | 'uws'

/** Options that may stay absent. */
type AbsentOption = 'jwt' | 'tls' | 'mesh' | 'logger'

/** {@link ServerOptions} with every default filled in, checked. */
export type ResolvedOptions = {
  readonly [Name in Exclude<keyof ServerOptions, AbsentOption>]-?: NonNullable<ServerOptions[Name]>
} & { readonly [Name in AbsentOption]?: NonNullable<ServerOptions[Name]> }

/**
 * Fills in the defaults and checks every value, and what must hold between them.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` with the option's name, the bad value and what is allowed; `E_INSECURE` when
 *   the options would open the server to everyone without saying `insecure`.
 */
export function resolveOptions(input: ServerOptions = {}): ResolvedOptions {
  rejectUnknownNames(input)
  const resolved: Record<string, unknown> = input.logger === undefined ? {} : { logger: input.logger }
  for (const spec of OPTIONS as readonly OptionSpec[]) {
    const [group, member] = splitName(spec.name)
    const source = member === undefined ? input : groupOf(input, group)
    if (source === undefined) continue
    const given = (source as Record<string, unknown>)[member ?? group]
    const value = given === undefined ? defaultOf(spec) : validate(spec, given)
    if (value === undefined) continue
    if (member === undefined) resolved[group] = value
    else resolved[group] = { ...(resolved[group] as object | undefined), [member]: value }
  }
  const options = resolved as unknown as ResolvedOptions
  checkTogether(input, options)
  return Object.freeze(options)
}

/** A broker of the caller's own is the one value of the table that is no text, number or switch. */
function validate(spec: OptionSpec, value: unknown): unknown {
  if (spec.name !== 'broker' || typeof value !== 'object') return validateOption(spec, value)
  assertBroker(value)
  return value
}

/** Splits `jwt.secret` into the object that it stands in and its name there. */
export function splitName(name: string): readonly [string, string | undefined] {
  const dot = name.indexOf('.')
  return dot < 0 ? [name, undefined] : [name.slice(0, dot), name.slice(dot + 1)]
}

function groupOf(input: ServerOptions, group: string): object | undefined {
  const value: unknown = input[group as keyof ServerOptions]
  if (value === undefined) return undefined
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw new WebMQError('E_OPTION_INVALID', { detail: `${group}: not an object` })
}

function rejectUnknownNames(input: ServerOptions): void {
  const names = OPTIONS.map((spec) => spec.name)
  const groups = new Set(names.filter((name) => name.includes('.')).map((name) => splitName(name)[0]))
  const given = Object.keys(input).flatMap((name) =>
    groups.has(name) ? Object.keys(groupOf(input, name) ?? {}).map((member) => `${name}.${member}`) : [name],
  )
  for (const name of given) {
    if (name === 'logger' || names.some((known) => known === name)) continue
    throw new WebMQError('E_OPTION_INVALID', { detail: `${name}: not known${didYouMean(name, names)}` })
  }
}

/** Rules that hold between options. */
function checkTogether(input: ServerOptions, options: ResolvedOptions): void {
  const { host, insecure, jwt, maxOutboxBytes, maxPayloadBytes, tls, transport } = options
  // One message of the largest size, with its frame and header, must fit, or every such message is a slow consumer.
  const minOutboxBytes = maxPayloadBytes + MESSAGE_OVERHEAD_BYTES
  if (maxOutboxBytes < minOutboxBytes) {
    throw invalid(
      `maxOutboxBytes: ${maxOutboxBytes} is less than maxPayloadBytes + ${MESSAGE_OVERHEAD_BYTES} = ${minOutboxBytes}`,
    )
  }
  if (input.tls !== undefined) {
    if (tls?.certFile === undefined || tls.keyFile === undefined) {
      throw invalid('tls: needs both tls.certFile (--tls-cert) and tls.keyFile (--tls-key)')
    }
    if (transport !== 'uws')
      throw invalid(`tls: the ${transport} transport has no TLS; take transport uws (--transport uws)`)
  }
  if (typeof options.broker === 'string' && brokerNameOf(options.broker) === 'mesh') checkMesh(options.broker, options)
  if (jwt !== undefined) checkTokens(jwt, insecure)
  else if (!insecure && !isLoopback(host)) {
    throw new WebMQError('E_INSECURE', {
      detail:
        `everyone who reaches ${host} could listen and publish anything; give a key for tokens (jwt.secret, jwt.publicKey ` +
        'or jwt.jwksUrl; --jwt-secret, --jwt-public-key or --jwks), or say insecure (--insecure) if that is what you want',
    })
  }
}

function checkMesh(broker: string, { mesh, insecure }: ResolvedOptions): void {
  const { peers, listen } = meshPlacesOf(broker, mesh?.listen)
  const stranger = [...peers, listen].find(({ host }) => !isLoopback(host))
  if (mesh?.secret !== undefined || insecure || stranger === undefined) return
  throw new WebMQError('E_INSECURE', {
    detail:
      `mesh: with a node at ${stranger.host}, whoever reaches one could publish and hear anything; give a secret that all nodes ` +
      'share (mesh.secret; --mesh-secret), or say insecure (--insecure) if that is what you want',
  })
}

function checkTokens(jwt: JwtOptions, insecure: boolean): void {
  const sources = [jwt.secret, jwt.publicKey, jwt.jwksUrl].filter((source) => source !== undefined)
  if (sources.length !== 1) {
    // An empty `jwt` is most often a variable that was not set: it must not open the server to everyone.
    throw invalid(
      `jwt: needs exactly one of jwt.secret (--jwt-secret), jwt.publicKey (--jwt-public-key) and jwt.jwksUrl (--jwks), has ${sources.length}`,
    )
  }
  allowedAlgorithms(jwt)
  if (jwt.jwksUrl === undefined || insecure) return
  const { protocol, hostname } = new URL(jwt.jwksUrl)
  if (protocol === 'http:' && !isLoopback(hostname)) {
    throw new WebMQError('E_INSECURE', {
      detail: `jwt.jwksUrl: whoever is between this machine and ${hostname} could put in keys of their own; use https://, or say insecure (--insecure)`,
    })
  }
}

function invalid(detail: string): WebMQError {
  return new WebMQError('E_OPTION_INVALID', { detail })
}

/** RFC 7518 §3.2: the key of HS256 has at least the size of its hash. */
const MIN_SECRET_BYTES = 32

/** What is allowed but deserves a warning in the log; one sentence each. */
export function warningsOf(options: ResolvedOptions): readonly string[] {
  const warnings: string[] = []
  const { host, jwt, mesh } = options
  if (jwt?.secret !== undefined && Buffer.byteLength(jwt.secret) < MIN_SECRET_BYTES) {
    warnings.push(
      `jwt.secret has fewer than ${MIN_SECRET_BYTES} bytes: whoever holds a token can find it by trying; make one with openssl rand -base64 32`,
    )
  }
  if (mesh?.secret !== undefined && Buffer.byteLength(mesh.secret) < MIN_SECRET_BYTES) {
    warnings.push(
      `mesh.secret has fewer than ${MIN_SECRET_BYTES} bytes: it can be found by trying; make one with openssl rand -base64 32`,
    )
  }
  if (jwt === undefined && !isLoopback(host)) {
    warnings.push(`anonymous access on ${host}: everyone who reaches it may listen and publish anything`)
  }
  return warnings
}
