import { isIP } from 'node:net'
import type { Authenticator, NatsConnection, NodeConnectionOptions } from '@nats-io/transport-node'
import { WebMQError } from 'webmq-client/protocol'
import { type NatsHost, textOf } from './address.js'
import type { NatsCore } from './library.js'
import { OpenedSockets } from './opened-sockets.js'

/** How to connect to one server. */
export interface ConnectOptions {
  /** How the server's monitoring calls the connection. */
  readonly name: string
  readonly authenticator: Authenticator
  /** PEM texts; `undefined`: the connection is encrypted only if the server offers it. */
  readonly tls: Readonly<Record<string, string>> | undefined
  /** What the subjects of answers begin with. */
  readonly inboxPrefix: string
}

/** The library's own heartbeats and timeout stay out of the way: a link has a `Liveness`, an attempt has a signal. */
const NEVER_MS = 2 ** 31 - 1
/** Complaints that the same credentials will cause again. */
const REFUSALS = /authorization violation|authentication (?:expired|revoked)/i
const HAS_NO_TLS = /does not support 'tls'/
/** Codes of Node and OpenSSL for a certificate that is not trusted. */
const CERTIFICATE_CODES = /CERT|UNABLE_TO_VERIFY/

/**
 * Connects to one server, once; the connection is never mended.
 * @param signal Ends the attempt, which the library cannot: it leaves the socket to a silent server open.
 * @throws {WebMQError} `E_BROKER_REFUSED` for credentials and certificates that the server will refuse again. Anything else may pass.
 */
export async function connectTo(
  core: NatsCore,
  host: NatsHost,
  { authenticator, tls, ...options }: ConnectOptions,
  signal: AbortSignal,
): Promise<NatsConnection> {
  signal.throwIfAborted()
  const sockets = new OpenedSockets()
  let credentialsError: unknown
  const connecting = sockets.run(() =>
    core.connect({
      ...options,
      ...(tls === undefined ? {} : { tls: withHost(tls, host) }),
      servers: textOf(host),
      reconnect: false,
      ignoreClusterUpdates: true,
      noAsyncTraces: true,
      pingInterval: NEVER_MS,
      timeout: NEVER_MS,
      authenticator: (nonce) => {
        try {
          return authenticator(nonce)
        } catch (error) {
          credentialsError = error
          throw error
        }
      },
    }),
  )
  const settled = connecting.then(
    async (connection) => {
      if (signal.aborted) await connection.close()
    },
    // The caller is told of it below.
    () => undefined,
  )
  void settled.finally(() => sockets.end())
  let abort: () => void = () => undefined
  const aborted = new Promise<never>((_, reject) => {
    abort = () => {
      sockets.callOff()
      reject(new Error(`no answer of ${textOf(host)} in time`))
    }
    signal.addEventListener('abort', abort, { once: true })
  })
  try {
    return await Promise.race([connecting, aborted])
  } catch (cause) {
    sockets.callOff()
    throw credentialsError ?? (signal.aborted ? cause : explained(cause, host))
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

type TlsOptions = NonNullable<NodeConnectionOptions['tls']>

/** Node checks a certificate against `host` when the address is an IP, which has no server name. */
function withHost(tls: Readonly<Record<string, string>>, { name }: NatsHost): TlsOptions {
  const options: TlsOptions & { host?: string } = isIP(name) === 0 ? { ...tls } : { ...tls, host: name }
  return options
}

function explained(cause: unknown, host: NatsHost): Error {
  const error = cause instanceof Error ? cause : new Error(String(cause))
  if (REFUSALS.test(error.message)) return refused(error.message, error)
  if (HAS_NO_TLS.test(error.message)) return refused(`${textOf(host)} has no TLS`, error)
  if ('code' in error && typeof error.code === 'string' && CERTIFICATE_CODES.test(error.code))
    return refused(`its certificate: ${error.message}`, error)
  return error.cause instanceof Error ? new Error(`${error.message}: ${error.cause.message}`, { cause }) : error
}

function refused(detail: string, cause: Error): WebMQError {
  return new WebMQError('E_BROKER_REFUSED', { detail, cause })
}
