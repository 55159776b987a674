import { isIP } from 'node:net'
import { generate } from 'selfsigned'

const DAY_MS = 86_400_000
/** Clocks of machines differ a little, so a certificate is valid before it was made. */
const CLOCK_MARGIN_MS = 3_600_000

/** A certificate and its private key, as PEM. */
export interface Certificate {
  readonly cert: string
  readonly key: string
}

/** What a certificate says. */
export interface CertificateOptions {
  /** Host names, wildcards and IP addresses; the first is the common name too. None: a certificate that clients refuse. */
  readonly names: readonly string[]
  /** Validity, from an hour ago; negative: days since it expired. Default 2. */
  readonly days?: number
  /** Days until it begins to be valid; default: it is valid. */
  readonly startsInDays?: number
  /** Signs it; default: it signs itself. */
  readonly issuer?: Certificate
  /** May sign other certificates. */
  readonly isIssuer?: boolean
}

/**
 * Makes a certificate (EC P-256) for tests and benches. Clients trust it when they get `cert`, or that of its issuer, as
 * an authority. Cost: a few milliseconds.
 */
export async function makeCertificate(options: CertificateOptions): Promise<Certificate> {
  const { names, days = 2, startsInDays = 0, issuer, isIssuer = false } = options
  const validFrom = Date.now() - CLOCK_MARGIN_MS + startsInDays * DAY_MS
  const validTo = validFrom + days * DAY_MS
  const { cert, private: key } = await generate([{ name: 'commonName', value: names[0] ?? '' }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    notBeforeDate: new Date(Math.min(validFrom, validTo - DAY_MS)),
    notAfterDate: new Date(validTo),
    ...(issuer === undefined ? undefined : { ca: issuer }),
    extensions: [
      { name: 'basicConstraints', cA: isIssuer, critical: true },
      { name: 'keyUsage', digitalSignature: true, keyCertSign: isIssuer, critical: true },
      ...(isIssuer ? [] : [{ name: 'extKeyUsage' as const, serverAuth: true }]),
      ...(names.length === 0 ? [] : [{ name: 'subjectAltName' as const, altNames: names.map(altNameOf) }]),
    ],
  })
  return { cert: withNewline(cert), key: withNewline(key) }
}

function altNameOf(name: string): { type: 2; value: string } | { type: 7; ip: string } {
  return isIP(name) === 0 ? { type: 2, value: name } : { type: 7, ip: name }
}

/** PEM texts can then be put behind each other. */
function withNewline(pem: string): string {
  return pem.endsWith('\n') ? pem : `${pem.replaceAll('\r\n', '\n')}\n`
}
