import { once } from 'node:events'
import { isIP } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { Redis } from 'ioredis'
import { readTlsFiles } from '../remote/tls-files.js'
import type { RedisAddress, RedisHost } from './address.js'
import { redisError } from './error.js'

/** What a {@link RedisConnection} is made of. */
export interface RedisConnectionOptions {
  readonly address: RedisAddress
  /** One of a cluster's servers; else the address tells. */
  readonly host?: RedisHost
  /** Shown by CLIENT LIST. */
  readonly name: string
  readonly hideSecrets: (text: string) => string
}

const CONNECT_TIMEOUT_MS = 5_000
const SENTINEL_TIMEOUT_MS = 2_000

/** One connection to a Redis. It never reconnects, and queues nothing while it is not ready. */
export class RedisConnection {
  readonly redis: Redis
  /** Resolves with the cause when the connection has ended. */
  readonly ended: Promise<Error>
  readonly #hideSecrets: (text: string) => string
  #lastError: Error | undefined

  private constructor({ address, host, name, hideSecrets }: RedisConnectionOptions, tls: ConnectionOptions) {
    this.#hideSecrets = hideSecrets
    this.redis = new Redis({
      ...targetOf(address, host, tls),
      ...(address.username === undefined ? undefined : { username: address.username }),
      ...(address.password === undefined ? undefined : { password: address.password }),
      db: address.database,
      connectionName: name,
      connectTimeout: CONNECT_TIMEOUT_MS,
      lazyConnect: true,
      // Only with sentinels, which may send to a server that is no longer the master.
      enableReadyCheck: address.kind === 'sentinel',
      enableOfflineQueue: false,
      retryStrategy: () => null,
      maxRetriesPerRequest: 0,
      autoResubscribe: false,
      autoResendUnfulfilledCommands: false,
      disableClientInfo: true,
      // disconnect() then closes at once. It would wait for an answer to its FIN, which a half-open connection never gives.
      disconnectTimeout: 0,
    })
    this.redis.on('error', (error) => {
      this.#lastError = error
    })
    this.ended = new Promise((resolve) => {
      this.redis.once('end', () => resolve(this.#failure(new Error('the connection was closed'))))
    })
  }

  /**
   * @param signal Gives up when it aborts.
   * @throws {WebMQError} `E_BROKER_REFUSED`, or another error when it may go well the next time.
   */
  static async open(options: RedisConnectionOptions, signal: AbortSignal): Promise<RedisConnection> {
    const connection = new RedisConnection(options, await readTlsFiles(options.address.tlsFiles))
    const abort = () => connection.destroy()
    signal.addEventListener('abort', abort, { once: true })
    try {
      signal.throwIfAborted()
      await connection.redis.connect()
      return connection
    } catch (error) {
      connection.destroy()
      throw connection.#failure(error)
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  /** Says QUIT and waits until the server has closed the connection, or for `limitMs`. */
  async close(limitMs: number): Promise<void> {
    if (this.redis.status === 'end') return
    const limit = new AbortController()
    const timer = setTimeout(() => limit.abort(), limitMs)
    try {
      await Promise.all([once(this.redis, 'end', { signal: limit.signal }), this.redis.quit()])
    } catch {
      // The connection is gone already, or the server does not answer.
    } finally {
      clearTimeout(timer)
      limit.abort()
      this.destroy()
    }
  }

  /** Ends it at once. */
  destroy(): void {
    this.redis.disconnect()
  }

  /** ioredis rejects with the fact that the connection has closed, and tells the cause by an event. */
  #failure(error: unknown): Error {
    return redisError(this.#lastError ?? error, this.#hideSecrets)
  }
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
