import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'
import { WebMQError } from 'webmq-client/protocol'
import type { TlsCertificate } from '../../kernel/ports/transport-options.js'

const MIN_VERSION = 'TLSv1.2'

export function secureOptionsOf({ cert, key }: TlsCertificate): SecureContextOptions {
  return { cert, key, minVersion: MIN_VERSION }
}

/**
 * A context of each certificate.
 * @throws {WebMQError} `E_OPTION_INVALID`: there is none, or one of them does not work.
 */
export function secureContextsOf(certificates: readonly TlsCertificate[]): SecureContext[] {
  if (certificates.length === 0) throw new WebMQError('E_OPTION_INVALID', { detail: 'tls: needs a certificate' })
  return certificates.map((certificate) =>
    withFiles(certificate, () => createSecureContext(secureOptionsOf(certificate))),
  )
}

/** The result of `use`, whose error then names the files. */
export function withFiles<T>({ certFile, keyFile }: TlsCertificate, use: () => T): T {
  try {
    return use()
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new WebMQError('E_OPTION_INVALID', { detail: `TLS with ${certFile} and ${keyFile}: ${reason}`, cause })
  }
}
