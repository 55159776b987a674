import type { LogFormat, Logger, LogLevel } from '../base/logger.js'
import type { Hooks, WebhookOptions } from '../hooks/index.js'
import type { JwtOptions } from '../identity/index.js'
import type { AuditLevel } from '../ports/audit-levels.js'
import type { Broker } from '../ports/broker.js'

/**
 * Options of {@link createServer}; all are optional. `docs/configuration.md` describes each option and the failure that it
 * prevents.
 */
export interface ServerOptions {
  /** Address to bind; default `127.0.0.1`. */
  readonly host?: string | undefined
  /** Port to bind, 0 for a free one; default 8080. */
  readonly port?: number | undefined
  /** Path of the WebSocket endpoint; default `/ws`. */
  readonly path?: string | undefined
  /** Whether event streams are served; default `on`. */
  readonly sse?: 'on' | 'off' | undefined
  /** Path of event streams; default `/sse`. */
  readonly ssePath?: string | undefined
  /** Cookie that may hold the token; default none. */
  readonly tokenCookie?: string | undefined
  /** Second port, for `/health`, `/ready` and `/metrics` alone, 0 for a free one; default off. */
  readonly adminPort?: number | undefined
  /** Address to bind `adminPort` to; default `127.0.0.1`. */
  readonly adminHost?: string | undefined
  /** Serves the demo page at `/`; default false. */
  readonly demo?: boolean | undefined
  /** PEM files, to serve `wss://` and `https://`. */
  readonly tls?: TlsFiles | undefined
  /** Transport that handles the sockets; default `auto`: native where it loads, otherwise `ws`. */
  readonly transport?: TransportName | undefined
  /** I/O threads of the native transport; default one less than cores, at least 1. */
  readonly threads?: number | undefined
  /** Time that a busy I/O thread may delay messages to share writes; default 10, 0 disables it. */
  readonly flushIntervalMs?: number | undefined
  /**
   * Broker between the nodes: `memory`, an address (`amqp://…`, `redis://…`, `nats://…`, `mesh://…`), or an object that
   * implements the port and passes `webmq-conformance`; default `memory`. The server starts and stops the broker; do not
   * share one between servers.
   */
  readonly broker?: string | Broker | undefined
  /** Name that all nodes of one system share at the broker; default `webmq`. */
  readonly brokerNamespace?: string | undefined
  /** Time that a publish or a listen waits for the broker; default 5,000. */
  readonly brokerTimeoutMs?: number | undefined
  /** Time that a starting server tries to reach the broker; default 30,000. */
  readonly brokerStartTimeoutMs?: number | undefined
  /** Interval of heartbeats to the broker; default 5,000. */
  readonly brokerHeartbeatMs?: number | undefined
  /** Bytes of messages that may wait for the broker; default 64 MiB. */
  readonly brokerMaxPendingBytes?: number | undefined
  /** How this node takes part in a mesh, with `mesh://…`. */
  readonly mesh?: MeshOptions | undefined
  /** Compresses messages for clients that offer permessage-deflate; default false. */
  readonly compression?: boolean | undefined
  /** Smallest message to compress, including its header; default 1,024. */
  readonly compressionThresholdBytes?: number | undefined
  /** Largest payload; default 256 KiB. */
  readonly maxPayloadBytes?: number | undefined
  /** Bytes that may wait for one connection, at least `maxPayloadBytes` + 4,096; default 1 MiB. */
  readonly maxOutboxBytes?: number | undefined
  /** Largest request head; default 8 KiB. */
  readonly maxHeaderBytes?: number | undefined
  /** Most open connections, 0 for as many as the descriptor limit allows; default 0. */
  readonly maxConnections?: number | undefined
  /** Open connections and handshakes of one address that is neither loopback nor private; default 1,000. */
  readonly maxConnectionsPerAddress?: number | undefined
  /** Open connections of one user to this node; default 100. */
  readonly maxConnectionsPerUser?: number | undefined
  /** Patterns per connection; default 128. */
  readonly maxListensPerConnection?: number | undefined
  /** Listens of one user to this node; default unlimited. */
  readonly maxListensPerUser?: number | undefined
  /** Publishes of one connection per second; default unlimited. */
  readonly maxPublishesPerSecond?: number | undefined
  /** Bytes of payload that one connection may publish per second; default unlimited. */
  readonly maxPublishBytesPerSecond?: number | undefined
  /** Publishes of one user to this node per second; default unlimited. */
  readonly maxPublishesPerSecondPerUser?: number | undefined
  /** Bytes of payload that one user may publish to this node per second; default unlimited. */
  readonly maxPublishBytesPerSecondPerUser?: number | undefined
  /** What may come at once after a rest, as the time in which it would come at these rates; default 2,000. */
  readonly publishBurstMs?: number | undefined
  /** Work that one connection may cause per second, in units of about a microsecond; default 500,000. */
  readonly workPerSecond?: number | undefined
  /** Work that one connection may cause at once after it was idle; default 500,000. */
  readonly workBurst?: number | undefined
  /** Estimated memory of the patterns that a node routes; default 1 GiB. */
  readonly maxPatternBytes?: number | undefined
  /** Patterns per connection with a `#` before their last word; default 16. */
  readonly maxSearchListensPerConnection?: number | undefined
  /** Requests of a connection that may wait for a reply; default 256. */
  readonly maxRequestsPerConnection?: number | undefined
  /** Words of a key, and of a pattern of a client; default 32. */
  readonly maxWords?: number | undefined
  /** `#` in a pattern of a client; default 3. */
  readonly maxHashes?: number | undefined
  /** Which messages a slow reader may miss, by pattern: `prices.#=latest`. Default: none; it is disconnected. */
  readonly slow?: readonly string[] | undefined
  /** Patterns of the keys whose messages say who published them, and when. Default: none. */
  readonly meta?: readonly string[] | undefined
  /** Time from accept to the end of the handshake; default 5,000. */
  readonly handshakeTimeoutMs?: number | undefined
  /** Time for a client to send a required token; default 10,000. */
  readonly authTimeoutMs?: number | undefined
  /** Time from the first byte of a message to its last; default 30,000. */
  readonly messageTimeoutMs?: number | undefined
  /** Silence after which a ping is sent; default 25,000. */
  readonly pingIntervalMs?: number | undefined
  /** Silence after a ping until the connection is closed; default 10,000. */
  readonly pingTimeoutMs?: number | undefined
  /** Time for a client to answer a close frame; default 5,000. */
  readonly closeTimeoutMs?: number | undefined
  /** Longest time over which connections are closed when the server stops; default 25,000. */
  readonly drainTimeoutMs?: number | undefined
  /** Time from the stop until the drain begins; `/ready` says 503 meanwhile, and clients may still connect. Default 0. */
  readonly drainDelayMs?: number | undefined
  /** Connections that are closed per second while the server drains; default 100. */
  readonly drainPerSecond?: number | undefined
  /**
   * Keys to log, and how much of each: `chat.#=100,10m` keeps the newest 100 messages of each key for ten minutes.
   * Default: all keys with the memory broker, otherwise none.
   */
  readonly history?: readonly string[] | undefined
  /** Messages that a node and its broker keep in the log; default 10,000. */
  readonly historyMaxMessages?: number | undefined
  /** Bytes that a node and its broker keep in the log; default 16 MiB. */
  readonly historyMaxBytes?: number | undefined
  /** Patterns of the keys whose last message is kept, for state topics: `prices.#`. Default: none. */
  readonly retain?: readonly string[] | undefined
  /** Most keys that are retained; default 2,000. */
  readonly retainMaxKeys?: number | undefined
  /** Most bytes of retained keys and payloads; default 4 MiB. */
  readonly retainMaxBytes?: number | undefined
  /** Time that message ids are remembered to find duplicates; default 120,000. */
  readonly dedupeWindowMs?: number | undefined
  /** Most message ids that are remembered; default 100,000. */
  readonly dedupeMaxIds?: number | undefined
  /** Time until the members of a crashed node are removed on the others; default 15,000. */
  readonly presenceTtlMs?: number | undefined
  /** Time that a member stays after its connection was lost; default 5,000. */
  readonly presenceLingerMs?: number | undefined
  /** Largest data of one presence member; default 4 KiB. */
  readonly presenceMaxDataBytes?: number | undefined
  /** Members of one key; default 1,000. */
  readonly presenceMaxMembersPerKey?: number | undefined
  /** Keys that a connection may enter, and may watch; default 128. */
  readonly presenceMaxKeysPerConnection?: number | undefined
  /** Members of one user on this node; default 1,000. */
  readonly presenceMaxMembersPerUser?: number | undefined
  /** Members of all keys and nodes; default 100,000. */
  readonly presenceMaxMembers?: number | undefined
  /** Bytes of the members of all keys and nodes; default 256 MiB. */
  readonly presenceMaxBytes?: number | undefined
  /** Origins whose pages may connect in addition to the server's own; default none. */
  readonly origins?: readonly string[] | undefined
  /** Keys of the HTTP API, at least 16 bytes each; default none. */
  readonly apiKeys?: readonly string[] | undefined
  /** Allows anonymous access beyond loopback; default false. */
  readonly insecure?: boolean | undefined
  /** Addresses of proxies that are believed when they name the client; default none. */
  readonly trustedProxies?: readonly string[] | undefined
  /** Expects the PROXY protocol from these proxies; default false. */
  readonly proxyProtocol?: boolean | undefined
  /** How tokens are verified. Without it, every client is anonymous and may do anything. */
  readonly jwt?: JwtOptions | undefined
  /**
   * Functions that decide about what clients do; the command line and the config file name a module with them. With a
   * hook `connect`, no tokens are needed.
   */
  readonly hooks?: Hooks | string | undefined
  /** An address that is asked about what clients do, and told what they did. */
  readonly webhook?: WebhookOptions | undefined
  /** Time in which a hook answers; default 5,000. */
  readonly hookTimeoutMs?: number | undefined
  /** Lowest level to log; default `info`. Ignored with a `logger`. */
  readonly logLevel?: LogLevel | undefined
  /** Format of log lines; default `auto`. Ignored with a `logger`. */
  readonly logFormat?: LogFormat | undefined
  /** Who may read `/metrics`: `local` (this machine), `all` or `off` (nobody). Default `local`. */
  readonly metrics?: MetricsAudience | undefined
  /** Where the audit log goes: `off`, `stderr`, or the name of a file; default `off`. */
  readonly auditLog?: string | undefined
  /** What the audit log has; default `listens`, which is everything. */
  readonly auditLevel?: AuditLevel | undefined
  /** Gets the log lines instead of standard error. A pino logger fits. */
  readonly logger?: Logger | undefined
}

/** PEM files of a TLS server: one pair, or two lists of the same length and order. */
export interface TlsFiles {
  /** Certificate chains. */
  readonly certFile: string | readonly string[]
  readonly keyFile: string | readonly string[]
}

/** The files of each certificate. */
export function tlsFilesOf({ certFile, keyFile }: TlsFiles): readonly { certFile: string; keyFile: string }[] {
  const keyFiles = [keyFile].flat()
  return [certFile].flat().map((file, index) => ({ certFile: file, keyFile: keyFiles[index] ?? '' }))
}

/** How a node takes part in a mesh. */
export interface MeshOptions {
  /** Address at which other nodes reach this node, `host:port`; default `127.0.0.1:7400`, port 0 for a free one. */
  readonly listen?: string | undefined
  /** Secret that all nodes share; required unless all are on this machine. */
  readonly secret?: string | undefined
}

/** Who may read `/metrics`, and the reason for a broker outage in `/health` and `/ready`. */
export type MetricsAudience = 'local' | 'all' | 'off'

/** A transport that comes with the server; `auto` is the native one where it loads, otherwise `ws`. */
export type TransportName = 'auto' | 'native' | 'ws' | 'uws'
