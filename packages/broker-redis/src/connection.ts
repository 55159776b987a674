import { addAbortListener } from 'node:events'
import { isIP } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { Redis } from 'ioredis'
import { deferred, type LinkContext, limitedSignal, readTlsFiles } from 'webmq-server/brokers'
import type { RedisAddress, RedisHost } from './address.js'
import { redisError } from './error.js'
import type { RedisLog } from './log.js'

export interface RedisLinkOptions {
  readonly address: RedisAddress
  readonly context: LinkContext
  readonly log: RedisLog
  readonly hideSecrets: (text: string) => string
}

const CONNECT_TIMEOUT_MS = 5_000
const SENTINEL_TIMEOUT_MS = 2_000
/** Until a server has answered that takes the connection; two heartbeats where that is longer. */
const ANSWER_TIMEOUT_MS = 3_000

/** One connection to a Redis. It never reconnects, and queues nothing while it is not ready. */
export class RedisConnection {
  readonly redis: Redis
  /** Resolves with the cause when the connection has ended. */
  readonly ended: Promise<Error>
  readonly #hideSecrets: (text: string) => string
  #lastError: Error | undefined

  private constructor(
    { address, context, hideSecrets }: RedisLinkOptions,
    host: RedisHost | undefined,
    tls: ConnectionOptions,
  ) {
    this.#hideSecrets = hideSecrets
    this.redis = new Redis({
      ...targetOf(address, host, tls),
      ...(address.username === undefined ? undefined : { username: address.username }),
      ...(address.password === undefined ? undefined : { password: address.password }),
      db: address.database,
      connectionName: `webmq-${context.node}`,
      connectTimeout: CONNECT_TIMEOUT_MS,
      lazyConnect: true,
      // Only with sentinels, which may name a server that is no longer the master.
      enableReadyCheck: address.kind === 'sentinel',
      enableOfflineQueue: false,
      retryStrategy: () => null,
      maxRetriesPerRequest: 0,
      autoResubscribe: false,
      autoResendUnfulfilledCommands: false,
      disableClientInfo: true,
      // disconnect() closes at once. By default it waits for the other end's FIN, which a half-open connection never
      // sends.
      disconnectTimeout: 0,
    })
    this.redis.on('error', (error) => {
      this.#lastError = error
    })
    const ended = deferred<Error>()
    this.ended = ended.promise
    this.redis.once('end', () => ended.resolve(this.#failure(new Error('the connection was closed'))))
  }

  /**
   * @param host A server of a cluster; default: from the address.
   * @param signal Ends the attempt.
   * @throws {WebMQError} `E_BROKER_REFUSED`, or another error if the next attempt may succeed.
   */
  static async open(
    options: RedisLinkOptions,
    host: RedisHost | undefined,
    signal: AbortSignal,
  ): Promise<RedisConnection> {
    const connection = new RedisConnection(options, host, await readTlsFiles(options.address.tlsFiles))
    using limited = limitedSignal(signal, attemptTimeoutMs(options))
    using _listener = addAbortListener(limited.signal, () => {
      connection.#lastError ??= limited.signal.reason
      connection.destroy()
    })
    let timer: NodeJS.Timeout | undefined
    connection.redis.once('connect', () => {
      timer = setTimeout(() => limited.abort(new Error('no answer in time')), answerTimeoutMs(options))
    })
    try {
      signal.throwIfAborted()
      await connection.redis.connect()
      return connection
    } catch (error) {
      connection.destroy()
      throw connection.#failure(error)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Ends the connection at once. The server still executes the commands it was sent, then forgets the connection. */
  destroy(): void {
    this.redis.disconnect()
  }

  /** ioredis rejects with "connection is closed" and reports the cause in an event. */
  #failure(error: unknown): Error {
    return redisError(this.#lastError ?? error, this.#hideSecrets)
  }
}

/** ioredis has no limit for the answers to its first commands. */
export function answerTimeoutMs({ context: { heartbeatMs } }: RedisLinkOptions): number {
  return Math.max(ANSWER_TIMEOUT_MS, 2 * heartbeatMs)
}

function attemptTimeoutMs(options: RedisLinkOptions): number {
  const { kind, hosts } = options.address
  const sentinelsMs = kind === 'sentinel' ? hosts.length * (CONNECT_TIMEOUT_MS + SENTINEL_TIMEOUT_MS) : 0
  return sentinelsMs + CONNECT_TIMEOUT_MS + answerTimeoutMs(options)
}

function targetOf(address: RedisAddress, host: RedisHost | undefined, tls: ConnectionOptions) {
  const { kind, hosts, isTls, masterName, sentinelUsername, sentinelPassword } = address
  if (kind === 'sentinel') {
    return {
      sentinels: [...hosts],
      name: masterName,
      sentinelRetryStrategy: () => null,
      sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
      ...(sentinelUsername === undefined ? undefined : { sentinelUsername }),
      ...(sentinelPassword === undefined ? undefined : { sentinelPassword }),
      ...(isTls ? { tls, sentinelTLS: tls, enableTLSForSentinelMode: true } : undefined),
    }
  }
  const target = host ?? hosts[0]
  if (!isTls) return { ...target }
  const servername = target === undefined || isIP(target.host) > 0 ? undefined : { servername: target.host }
  return { ...target, tls: { ...tls, ...servername } }
}
