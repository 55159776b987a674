import { addAbortListener } from 'node:events'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import type { Auth, Authenticator, NatsConnection, NodeConnectionOptions } from '@nats-io/transport-node'
import { WebMQError } from 'webmq-client/protocol'
import { deferred, OpenedSockets } from 'webmq-server/brokers'
import type { NatsIdentity } from './address.js'
import { type NatsHost, textOf } from './address.js'

export type NatsCore = typeof import('@nats-io/transport-node')
export type NatsJetStream = typeof import('@nats-io/jetstream')

export interface ConnectOptions {
  /** Name of the connection in the server's monitoring. */
  readonly name: string
  readonly authenticator: Authenticator
  /** PEM texts. `undefined`: encrypted only if the server requires it. */
  readonly tls: Readonly<Record<string, string>> | undefined
  readonly inboxPrefix: string
}

/** A connection, and how to end it at once: the library waits until its last bytes are written. */
export interface OpenedConnection {
  readonly connection: NatsConnection
  readonly destroy: () => void
}

/** Turns off the library's heartbeats and timeout: a link has a `Liveness`, an attempt has a signal. */
const NEVER_MS = 2 ** 31 - 1
/** Errors that the same credentials would cause again. */
const REFUSALS = /authorization violation|authentication (?:expired|revoked)/i
const HAS_NO_TLS = /does not support 'tls'/
/** Codes of Node and OpenSSL for a certificate that is not trusted. */
const CERTIFICATE_CODES = /CERT|UNABLE_TO_VERIFY/

/**
 * Connects to one server, once; the connection never reconnects.
 * @param signal Ends the attempt. The library cannot: it leaves the socket to a silent server open.
 * @throws {WebMQError} `E_BROKER_REFUSED` for credentials and certificates that would be refused again. After any other
 *   error, another attempt may succeed.
 */
export async function connectTo(
  core: NatsCore,
  host: NatsHost,
  { authenticator, tls, ...options }: ConnectOptions,
  signal: AbortSignal,
): Promise<OpenedConnection> {
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
  // `Promise.race` below reports the error.
  void connecting.catch(() => undefined).finally(() => sockets.end())
  const aborted = deferred<never>()
  using _listener = addAbortListener(signal, () => {
    sockets.destroy()
    aborted.reject(new Error(`no answer of ${textOf(host)} in time`))
  })
  try {
    const connection = await Promise.race([connecting, aborted.promise])
    return { connection, destroy: () => sockets.destroy() }
  } catch (cause) {
    sockets.destroy()
    throw credentialsError ?? (signal.aborted ? cause : explained(cause, host))
  }
}

type TlsOptions = NonNullable<NodeConnectionOptions['tls']>

/** For an IP address Node checks the certificate against `host`: there is no server name. */
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

/**
 * Makes the library's authenticator for an identity. Reads the identity's file, if there is one.
 * @throws {WebMQError} `E_BROKER_REFUSED` if the file cannot be read. The authenticator throws it if the file is not
 *   valid.
 */
export async function readCredentials(identity: NatsIdentity, core: NatsCore): Promise<Authenticator> {
  switch (identity.kind) {
    case 'nobody':
      return () => undefined
    case 'user':
      return () => ({ user: identity.user, pass: identity.password })
    case 'token':
      return () => ({ auth_token: identity.token })
    case 'creds':
    case 'nkey': {
      const bytes = await readIdentityFile(identity.file)
      const authenticator =
        identity.kind === 'creds' ? core.credsAuthenticator(bytes) : core.nkeyAuthenticator(trimmed(bytes))
      return (nonce) => sign(authenticator, nonce, identity.file)
    }
  }
}

async function readIdentityFile(file: string): Promise<Uint8Array> {
  try {
    return await readFile(file)
  } catch (cause) {
    throw new WebMQError('E_BROKER_REFUSED', { detail: `the credentials file ${file} cannot be read`, cause })
  }
}

function trimmed(bytes: Uint8Array): Uint8Array {
  return Buffer.from(Buffer.from(bytes).toString().trim())
}

/** The library's error explains what is wrong with the file and reveals none of its content. */
function sign(authenticator: Authenticator, nonce: string | undefined, file: string): Auth {
  try {
    return authenticator(nonce)
  } catch (cause) {
    throw new WebMQError('E_BROKER_REFUSED', { detail: `the credentials file ${file} cannot be used`, cause })
  }
}
