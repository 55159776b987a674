import { certificateNames, type TlsCertificate } from 'webmq-server/ports'
import { secureContextsOf, withFiles } from 'webmq-server/transports'
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
  // `addServerName` ignores what it cannot read.
  secureContextsOf(certificates)
  const [first, ...others] = certificates
  if (first === undefined) return module.App()
  const app = withFiles(first, () => module.SSLApp(filesOf(first)))
  route(app)
  // The names of an only certificate need no entry; for each, uWebSockets.js prints a line to standard output.
  if (others.length === 0) return app
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

function filesOf({ certFile, keyFile }: TlsCertificate): UwsCertificateFiles {
  return { cert_file_name: certFile, key_file_name: keyFile }
}
