import { createSecureContext } from 'node:tls'
import { WebMQError } from 'webmq-client/protocol'
import type { TlsCertificate } from 'webmq-server/ports'
import { certificateNames } from 'webmq-server/ports'
import type { UwsApp, UwsCertificateFiles, UwsModule } from './module.js'

/**
 * An app that serves TLS, with the same routes for every server name: each has a router of its own. uWebSockets.js reads the
 * files once. It cannot replace the certificate of clients without a server name, so the transport has no `tlsReload`.
 * @throws {WebMQError} `E_OPTION_INVALID`.
 */
export function createSslApp(
  module: UwsModule,
  certificates: readonly TlsCertificate[],
  route: (app: UwsApp) => void,
): UwsApp {
  const [first] = certificates
  if (first === undefined) throw new WebMQError('E_OPTION_INVALID', { detail: 'tls: needs a certificate' })
  for (const certificate of certificates) check(certificate)
  const app = createApp(module, first)
  route(app)
  // The names of an only certificate need no entry; for each, uWebSockets.js prints a line to standard output.
  if (certificates.length === 1) return app
  const known = new Set<string>()
  for (const certificate of certificates) {
    for (const name of certificateNames(certificate.cert)) {
      // The default's own names too: an exact name of it wins over a wildcard of a later certificate.
      if (known.has(name)) continue
      known.add(name)
      app.addServerName(name, filesOf(certificate))
      route(app.domain(name))
    }
  }
  return app
}

function createApp(module: UwsModule, certificate: TlsCertificate): UwsApp {
  try {
    return module.SSLApp(filesOf(certificate))
  } catch (cause) {
    throw invalid(certificate, cause)
  }
}

/** `addServerName` ignores what it cannot read. */
function check(certificate: TlsCertificate): void {
  try {
    createSecureContext({ cert: certificate.cert, key: certificate.key })
  } catch (cause) {
    throw invalid(certificate, cause)
  }
}

function filesOf({ certFile, keyFile }: TlsCertificate): UwsCertificateFiles {
  return { cert_file_name: certFile, key_file_name: keyFile }
}

function invalid({ certFile, keyFile }: TlsCertificate, cause: unknown): WebMQError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new WebMQError('E_OPTION_INVALID', { detail: `TLS with ${certFile} and ${keyFile}: ${reason}`, cause })
}
