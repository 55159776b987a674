import { X509Certificate } from 'node:crypto'

/** An entry of the subject alternative names, as Node prints it: quoted when it contains special characters. */
const DNS_ENTRY = /(?:^|, )DNS:(?:"((?:[^"\\]|\\.)*)"|([^,]*))/g

/**
 * The host names of a certificate, in lower case, wildcards (`*.example.com`) included. Without subject alternative names
 * there are none, because clients ignore the common name (RFC 9525 §2).
 * @param cert PEM or DER; of a chain, the first certificate counts.
 * @throws {Error} If there is no certificate.
 */
export function certificateNames(cert: Uint8Array | X509Certificate): readonly string[] {
  const { subjectAltName = '' } = cert instanceof X509Certificate ? cert : new X509Certificate(cert)
  return [...subjectAltName.matchAll(DNS_ENTRY)].map(([, quoted, plain]) => (quoted ?? plain ?? '').toLowerCase())
}

/**
 * The certificate for a server name (SNI): an exact name wins over a wildcard, an earlier certificate over a later one.
 * @param namesOfEach The names of each certificate, in the order of the certificates.
 * @returns Its index; 0, the default, if no certificate has the name.
 */
export function certificateIndexFor(serverName: string, namesOfEach: readonly (readonly string[])[]): number {
  const name = serverName.toLowerCase()
  const exact = namesOfEach.findIndex((names) => names.includes(name))
  if (exact >= 0) return exact
  // RFC 9525 §6.3: the wildcard stands for exactly one label, the first.
  const dot = name.indexOf('.')
  if (dot < 0) return 0
  const wildcard = `*${name.slice(dot)}`
  return Math.max(
    0,
    namesOfEach.findIndex((names) => names.includes(wildcard)),
  )
}
