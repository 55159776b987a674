import type { X509Certificate } from 'node:crypto'
import { certificateNames } from '../../ports/certificate-names.js'
import type { ReadCertificate } from './read-certificate.js'

/** RFC 5280 §4.2.1.12. */
const SERVER_AUTHENTICATION = '1.3.6.1.5.5.7.3.1'
const READABLE_BY_OTHERS = 0o004

/** What is wrong with a certificate that still works in some way; one sentence each. */
export function certificateWarnings(certificate: ReadCertificate, nowMs: number): readonly string[] {
  const { certFile, keyFile, chain, keyMode } = certificate
  const [server] = chain
  const warnings: string[] = []
  if (nowMs > validToMs(server)) {
    warnings.push(`the certificate in ${certFile} expired on ${dateOf(validToMs(server))}: clients refuse it`)
  }
  if (nowMs < Date.parse(server.validFrom)) {
    const validFrom = dateOf(Date.parse(server.validFrom))
    warnings.push(`the certificate in ${certFile} is valid from ${validFrom} on: until then, clients refuse it`)
  }
  if (!server.subjectAltName) {
    warnings.push(`the certificate in ${certFile} has no subject alternative name: clients refuse it for every host`)
  }
  if (server.keyUsage !== undefined && !server.keyUsage.includes(SERVER_AUTHENTICATION)) {
    warnings.push(`the certificate in ${certFile} is not for servers (extended key usage): clients refuse it`)
  }
  const wrong = chain.findIndex((each, index) => index > 0 && chain[index - 1]?.checkIssued(each) === false)
  if (wrong > 0) {
    warnings.push(
      `certificate ${wrong + 1} in ${certFile} did not issue the one before it: clients may refuse it; the order is server, then intermediates`,
    )
  }
  if (chain.length === 1 && isFromPublicAuthority(server)) {
    warnings.push(
      `${certFile} has no intermediate certificate: many clients refuse it; use the full chain (fullchain.pem of certbot)`,
    )
  }
  if (process.platform !== 'win32' && (keyMode & READABLE_BY_OTHERS) !== 0) {
    warnings.push(`every user of this machine can read the private key in ${keyFile}: chmod 600 it`)
  }
  return warnings
}

export function describeCertificate({ certFile, chain: [server] }: ReadCertificate): object {
  return {
    certFile,
    names: namesOf(server),
    validTo: new Date(validToMs(server)).toISOString(),
  }
}

export function validToMs({ validTo }: X509Certificate): number {
  return Date.parse(validTo)
}

/** Host names; for a certificate without one, its addresses or its subject. */
function namesOf(server: X509Certificate): readonly string[] {
  const names = certificateNames(server)
  return names.length > 0 ? names : [server.subjectAltName || server.subject]
}

/** Public authorities say where to get the intermediate certificate that signed it (RFC 5280 §4.2.2.1). */
function isFromPublicAuthority({ infoAccess, issuer, subject }: X509Certificate): boolean {
  return infoAccess?.includes('CA Issuers') === true && issuer !== subject
}

function dateOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}
