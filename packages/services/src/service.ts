/** A server program that tests and the bench run against: brokers, and a database. */
export type ServiceKind = 'rabbitmq' | 'redis' | 'nats' | 'postgres'

/**
 * The source of a service: a given URL, an existing program, a container, or a program that was fetched: its Debian package
 * was installed or unpacked, or Go has built it.
 */
export type ServiceSource = 'url' | 'binary' | 'container' | 'package'

/** A real RabbitMQ, Redis, NATS or PostgreSQL on loopback. Unless given by URL it is private, with its own port and data folder. */
export interface Service extends AsyncDisposable {
  readonly kind: ServiceKind
  /**
   * `amqp://guest:guest@127.0.0.1:PORT`, `redis://127.0.0.1:PORT`, `nats://127.0.0.1:PORT` or
   * `postgres://postgres@127.0.0.1:PORT/postgres`; or the URL that was given.
   */
  readonly url: string
  readonly source: ServiceSource
  /**
   * User and system time of its processes so far, threads and children included, across restarts. `undefined` for a
   * container or a URL.
   */
  cpuSeconds(): number | undefined
  /**
   * Largest resident memory of its processes since the last restart, children included, summed. `undefined` as for
   * `cpuSeconds`, or when it does not run.
   */
  peakRssBytes(): number | undefined
  /**
   * Kills it with SIGKILL, like a crash: nothing is flushed. Resolves when every process is gone; the data folder
   * stays.
   * @throws {ServiceError} when the service was given by URL.
   */
  kill(): Promise<void>
  /**
   * Stops its processor time (SIGSTOP): it stands still with all its connections, until `thaw`, `kill` or `stop`.
   * @throws {ServiceError} when the service was given by URL.
   */
  freeze(): Promise<void>
  /** Ends what `freeze` did. */
  thaw(): Promise<void>
  /**
   * Starts it again on the same port and data folder, after an orderly stop if it runs. Resolves when it accepts
   * connections.
   * @throws {ServiceError} when it does not come up, or was given by URL.
   */
  restart(): Promise<void>
  /**
   * Kills it, deletes its data, and starts it again on the same port. Absent for a container or a URL.
   * @throws {ServiceError} when it does not come up.
   */
  wipe?(): Promise<void>
  /**
   * Keeps a copy of its data as it is on the disk; stops it in order for that, and starts it again. Replaces an earlier
   * copy. Absent for a container or a URL.
   */
  keepData?(): Promise<void>
  /**
   * Kills it, puts the data back that `keepData` has kept, and starts it again on the same port.
   * @throws {ServiceError} when it does not come up.
   */
  restoreData?(): Promise<void>
  /**
   * Kills it, and changes the file that it has appended log entries to last, as a failing disk does. It stays down.
   * Absent for a container or a URL.
   */
  damageLog?(change: (bytes: Buffer) => Uint8Array): Promise<void>
  /** Ends it and removes its data folder. A service given by URL keeps running. Idempotent. */
  stop(): Promise<void>
}

/** Options of all services. */
export interface ServiceOptions {
  /**
   * Never a service given by URL: for callers that kill, restart or configure it. Default false; services with settings
   * are always private.
   */
  readonly isPrivate?: boolean
  /** Where the data folder of a program is made: on a disk of a certain size. Not for a container or a URL. */
  readonly dataParent?: string | undefined
  /**
   * The release to start, in whole or in part: `4.0`, of a Redis also `valkey-8.1`, of NATS also `newest`; `system` is what
   * this machine has. The service is then private. Default: `WEBMQ_TEST_<KIND>_VERSION`, else `system`.
   */
  readonly version?: string | undefined
}
