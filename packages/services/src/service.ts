/** A broker's server program that tests and the bench run against. */
export type ServiceKind = 'rabbitmq' | 'redis' | 'nats'

/**
 * How a service was had: given by its URL, a program that was there, a container, or a program whose Debian package was
 * installed for this call.
 */
export type ServiceSource = 'url' | 'binary' | 'container' | 'package'

/** A real RabbitMQ, Redis or NATS on loopback. Unless it was given by URL it is private: its own port and data folder. */
export interface Service extends AsyncDisposable {
  readonly kind: ServiceKind
  /** `amqp://guest:guest@127.0.0.1:PORT`, `redis://127.0.0.1:PORT` or `nats://127.0.0.1:PORT`; or the URL that was given. */
  readonly url: string
  readonly source: ServiceSource
  /**
   * User and system time of its processes so far, threads and children included, over all restarts. `undefined` when
   * they are not ours: a container's, or those behind a URL.
   */
  cpuSeconds(): number | undefined
  /**
   * Largest resident memory of its processes so far, children included, added up; since the last restart. `undefined` as with
   * `cpuSeconds`, or when it does not run.
   */
  peakRssBytes(): number | undefined
  /**
   * SIGKILL: a crash, nothing is flushed. Resolves when every process is gone; the data folder stays.
   * @throws {ServiceError} when the service was given by URL.
   */
  kill(): Promise<void>
  /**
   * Starts it again on the same port and data folder, after ending it in an orderly way if it runs. Resolves when it
   * takes connections.
   * @throws {ServiceError} when it does not come up, or was given by URL.
   */
  restart(): Promise<void>
  /** Ends it and removes its data folder; leaves one alone that was given by URL. Idempotent. */
  stop(): Promise<void>
}

/** What all services have in common to ask for. */
export interface ServiceOptions {
  /**
   * Never one that was given by URL: for callers that kill, restart or configure it. Default false; services with
   * settings of their own are always private.
   */
  readonly isPrivate?: boolean
}
