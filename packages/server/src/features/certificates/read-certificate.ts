import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { invalidOption } from '../../kernel/base/invalid-option.js'
import { limitedBytes } from '../../kernel/base/limited-bytes.js'
import { codeOf, reasonOf } from '../../kernel/base/reason.js'
import { certificateNames } from '../../kernel/ports/certificate-names.js'
import type { TlsCertificate } from '../../kernel/ports/transport-options.js'

/** The two files of one certificate, PEM. */
export interface CertificateFiles {
  /** The certificate of the server, then the intermediate ones. */
  readonly certFile: string
  /** Its private key, without a passphrase. */
  readonly keyFile: string
}

export interface ReadCertificate extends TlsCertificate {
  /** In the order of the file: of the server first. */
  readonly chain: readonly [X509Certificate, ...X509Certificate[]]
  readonly privateKey: KeyObject
  /** Permission bits of the key file. */
  readonly keyMode: number
}

/** A chain has a few kilobytes. A larger file is something else, perhaps one that never ends. */
const MAX_FILE_BYTES = 1024 * 1024
const CERTIFICATE = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[^-]*-----END (?:TRUSTED |X509 )?CERTIFICATE-----/g
const PRIVATE_KEY = /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/
const ENCRYPTED_KEY = /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m
/** RFC 9325 §4.3. */
const MIN_RSA_BITS = 2048
/** The first byte of DER: a sequence. */
const DER_START = 0x30

/**
 * Reads a pair of files.
 * @throws {WebMQError} `E_OPTION_INVALID`: a file cannot be read or holds something else, or the two do not belong together.
 */
export async function readCertificate({ certFile, keyFile }: CertificateFiles): Promise<ReadCertificate> {
  const [{ bytes: cert }, { bytes: key, mode: keyMode }] = [
    await readFile(certFile, 'tls.certFile'),
    await readFile(keyFile, 'tls.keyFile'),
  ]
  const chain = parseChain(cert, certFile)
  const privateKey = parseKey(key, keyFile)
  if (!chain[0].checkPrivateKey(privateKey)) {
    const isInChain = chain.some((certificate) => certificate.checkPrivateKey(privateKey))
    throw isInChain
      ? invalidOption(
          `tls.certFile: ${certFile} begins with another certificate than the server's; put that first, then the others`,
        )
      : invalidOption(`tls.keyFile: the key in ${keyFile} does not belong to the certificate in ${certFile}`)
  }
  return { certFile, keyFile, cert, key, chain, privateKey, keyMode }
}

function parseChain(bytes: Buffer, file: string): [X509Certificate, ...X509Certificate[]] {
  const text = bytes.toString('latin1')
  const [first, ...others] = (text.match(CERTIFICATE) ?? []).map((pem, index) => {
    try {
      return new X509Certificate(pem)
    } catch (cause) {
      throw invalidOption(`tls.certFile: certificate ${index + 1} of ${file} cannot be read (${whyOf(cause)})`, cause)
    }
  })
  if (first !== undefined) return [first, ...others]
  if (PRIVATE_KEY.test(text)) throw invalidOption(`tls.certFile: ${file} holds a private key and no certificate`)
  throw invalidOption(`tls.certFile: ${file} holds no certificate in PEM form${derAdvice(bytes, 'x509')}`)
}

function parseKey(bytes: Buffer, file: string): KeyObject {
  const text = bytes.toString('latin1')
  if (ENCRYPTED_KEY.test(text)) {
    throw invalidOption(
      `tls.keyFile: the key in ${file} is protected by a passphrase; write one without it: openssl pkey -in ${file} -out …`,
    )
  }
  if (!PRIVATE_KEY.test(text))
    throw invalidOption(`tls.keyFile: ${file} holds no private key in PEM form${derAdvice(bytes, 'pkey')}`)
  let key: KeyObject
  try {
    key = createPrivateKey(bytes)
  } catch (cause) {
    throw invalidOption(`tls.keyFile: the key in ${file} cannot be read (${whyOf(cause)})`, cause)
  }
  const { modulusLength = MIN_RSA_BITS } = key.asymmetricKeyDetails ?? {}
  if (modulusLength < MIN_RSA_BITS) {
    throw invalidOption(
      `tls.keyFile: the key in ${file} has ${modulusLength} bits; clients want at least ${MIN_RSA_BITS}`,
    )
  }
  return key
}

function derAdvice(bytes: Buffer, command: 'x509' | 'pkey'): string {
  return bytes[0] === DER_START ? `; it seems to be DER, which openssl ${command} -inform DER converts` : ''
}

async function readFile(path: string, option: string): Promise<{ readonly bytes: Buffer; readonly mode: number }> {
  let file: FileHandle | undefined
  try {
    file = await open(path)
    const { mode } = await file.stat()
    const content = file.createReadStream({ autoClose: false, end: MAX_FILE_BYTES })
    return { bytes: await limitedBytes(content, MAX_FILE_BYTES, () => new Error('too large')), mode }
  } catch (cause) {
    throw invalidOption(`${option}: cannot read ${path} (${whyOf(cause)})`, cause)
  } finally {
    await file?.close()
  }
}

/** The code of a system error; those of OpenSSL say less than their messages. */
function whyOf(error: unknown): string {
  const code = codeOf(error)
  return code.startsWith('ERR_') ? reasonOf(error) : code
}

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
