import type { Logger } from '../../kernel/base/logger.js'
import type { JwtOptions } from '../../kernel/identity/index.js'
import type { Broker } from '../../kernel/ports/broker.js'
import type { Hooks } from './hooks.js'
import type { TableOptions } from './table.js'
import type { WebhookOptions } from './webhook.js'

/**
 * Options of {@link createServer}; all are optional. `docs/configuration.md` describes each option and the failure that it
 * prevents.
 */
export interface ServerOptions extends Omit<TableOptions, 'broker' | 'hooks'> {
  /** PEM files, to serve `wss://` and `https://`. */
  readonly tls?: TlsFiles | undefined
  /**
   * Broker between the nodes: `memory`, an address (`amqp://…`, `redis://…`, also for Valkey, `nats://…`, `mesh://…`), or
   * an object that implements the port and passes `webmq-conformance`; default `memory`. The server starts and stops the
   * broker; do not share one between servers.
   */
  readonly broker?: string | Broker | undefined
  /** How this node takes part in a mesh, with `mesh://…`. */
  readonly mesh?: MeshOptions | undefined
  /** How tokens are verified. Without it, every client is anonymous and may do anything. */
  readonly jwt?: JwtOptions | undefined
  /**
   * Functions that decide about what clients do; the command line and the config file name a module with them. With a
   * hook `connect`, no tokens are needed.
   */
  readonly hooks?: Hooks | string | undefined
  /** An address that is asked about what clients do, and told what they did. */
  readonly webhook?: WebhookOptions | undefined
  /** A database whose messages are published when their transaction commits. */
  readonly outbox?: OutboxOptions | undefined
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

/** Options of the outbox. */
export interface OutboxOptions {
  /** `postgres://user:password@host:5432/database`. */
  readonly url: string
  /** Default 1,000. */
  readonly pollMs?: number | undefined
  /** Rows that are read and published at once; default 500. */
  readonly maxBatchRows?: number | undefined
  /** Bytes of their payloads; default 4 MiB. */
  readonly maxBatchBytes?: number | undefined
}

/** How a node takes part in a mesh. */
export interface MeshOptions {
  /** Address at which other nodes reach this node, `host:port`; default `127.0.0.1:7400`, port 0 for a free one. */
  readonly listen?: string | undefined
  /** Secret that all nodes share; required unless all are on this machine. */
  readonly secret?: string | undefined
}

/** Who may read `/metrics`, and the reason for a broker outage in `/health` and `/ready`. */
export type MetricsAudience = NonNullable<ServerOptions['metrics']>

/** A transport that comes with the server; `auto` is the native one where it loads, otherwise `ws`. */
export type TransportName = NonNullable<ServerOptions['transport']>

type AbsentOption =
  | 'hooks'
  | 'jwt'
  | 'tls'
  | 'mesh'
  | 'outbox'
  | 'logger'
  | 'adminPort'
  | 'tokenCookie'
  | 'webhook'
  | 'maxListensPerUser'
  | 'maxPublishesPerSecond'
  | 'maxPublishBytesPerSecond'
  | 'maxPublishesPerSecondPerUser'
  | 'maxPublishBytesPerSecondPerUser'

/** {@link ServerOptions} with all defaults filled in and all checks passed. */
export type ResolvedOptions = {
  readonly [Name in Exclude<keyof ServerOptions, AbsentOption>]-?: NonNullable<ServerOptions[Name]>
} & { readonly [Name in AbsentOption]?: NonNullable<ServerOptions[Name]> }
