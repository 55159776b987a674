import type { SecureContext, SecureContextOptions, Server, TlsOptions } from 'node:tls'
import { certificateIndexFor, certificateNames } from '../../../kernel/ports/certificate-names.js'
import type { TlsCertificate } from '../../../kernel/ports/transport-options.js'
import { secureContextsOf, secureOptionsOf } from '../certificates.js'

interface Checked {
  readonly first: SecureContextOptions
  readonly contexts: readonly SecureContext[]
  readonly namesOfEach: readonly (readonly string[])[]
}

/** Certificates of a TLS server, by server name (SNI). They can be replaced while it runs. */
export class WsCertificates {
  #checked: Checked

  /** @throws {WebMQError} `E_OPTION_INVALID`. */
  constructor(certificates: readonly TlsCertificate[]) {
    this.#checked = check(certificates)
  }

  get serverOptions(): TlsOptions {
    return {
      ...this.#checked.first,
      ALPNProtocols: ['http/1.1'],
      // Called for each handshake that names a host, so other certificates take effect at once.
      SNICallback: (name, done) => {
        const { contexts, namesOfEach } = this.#checked
        done(null, contexts[certificateIndexFor(name, namesOfEach)])
      },
    }
  }

  /** @throws {WebMQError} `E_OPTION_INVALID`; the old ones stay. */
  replace(certificates: readonly TlsCertificate[], server: Server): void {
    this.#checked = check(certificates)
    // For handshakes that name no host.
    server.setSecureContext(this.#checked.first)
  }
}

function check(certificates: readonly TlsCertificate[]): Checked {
  const contexts = secureContextsOf(certificates)
  const [first] = certificates.map(secureOptionsOf)
  return { first: first ?? {}, contexts, namesOfEach: certificates.map(({ cert }) => certificateNames(cert)) }
}
