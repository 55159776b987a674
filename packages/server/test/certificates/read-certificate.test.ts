import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { type CertificateOptions, makeCertificate } from 'webmq-services'
import {
  certificateWarnings,
  describeCertificate,
  readCertificate,
} from '../../src/features/certificates/read-certificate.js'

const folder = mkdtempSync(path.join(tmpdir(), 'webmq-certificates-'))
const NAMES = ['shop.example.com', '*.example.org']
const DAY_MS = 86_400_000
let count = 0

afterAll(() => rmSync(folder, { recursive: true }))

/** A file with this content, which only its owner can read. */
function fileOf(content: string | Uint8Array, mode = 0o600): string {
  const file = path.join(folder, `${++count}.pem`)
  writeFileSync(file, content)
  chmodSync(file, mode)
  return file
}

async function read(cert: string | Uint8Array, key: string | Uint8Array, keyMode?: number) {
  return await readCertificate({ certFile: fileOf(cert), keyFile: fileOf(key, keyMode) })
}

const pair = await makeCertificate({ names: NAMES })
const other = await makeCertificate({ names: NAMES })
const der = new X509Certificate(pair.cert).raw
const key = createPrivateKey(pair.key)
const smallKey = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey

describe('readCertificate', () => {
  it('takes a chain with comments and Windows line breaks, and a key of any form', async () => {
    const chain = `Subject: shop - the first\n${pair.cert}\n# and its issuer\n${other.cert}`.replaceAll('\n', '\r\n')
    const forms = [pair.key, key.export({ type: 'sec1', format: 'pem' }), `${pair.key}${pair.cert}`]
    for (const form of forms) expect((await read(chain, form)).chain).toHaveLength(2)
    const both = fileOf(pair.key + pair.cert)
    expect((await readCertificate({ certFile: both, keyFile: both })).chain).toHaveLength(1)
  })

  it.each<[title: string, cert: string | Uint8Array, key: string | Uint8Array, message: string]>([
    ['a certificate in DER form', der, pair.key, 'it seems to be DER, which openssl x509 -inform DER converts'],
    ['a key in DER form', pair.cert, key.export({ type: 'pkcs8', format: 'der' }), 'openssl pkey -inform DER'],
    ['files that are exchanged', pair.key, pair.cert, 'holds a private key and no certificate'],
    ['an empty certificate file', '', pair.key, 'holds no certificate in PEM form'],
    ['an empty key file', pair.cert, '', 'holds no private key in PEM form'],
    ['a broken certificate', pair.cert.replace(/^M.{9}/m, 'MAAAAAAAAA'), pair.key, 'certificate 1 of'],
    ['a broken key', pair.cert, pair.key.replace(/^M.{9}/m, 'MAAAAAAAAA'), 'cannot be read'],
    ['a key of another certificate', pair.cert, other.key, 'does not belong to the certificate in'],
    ['a chain in the wrong order', other.cert + pair.cert, pair.key, 'begins with another certificate'],
    [
      'a key with a passphrase',
      pair.cert,
      key.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' }),
      'is protected by a passphrase',
    ],
    [
      'an older key with a passphrase',
      pair.cert,
      key.export({ type: 'sec1', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' }),
      'is protected by a passphrase',
    ],
    ['a short key', pair.cert, smallKey.export({ type: 'pkcs1', format: 'pem' }), 'has 1024 bits'],
    ['a file that is far too large', Buffer.alloc(2 * 1024 * 1024), pair.key, 'too large'],
  ])('refuses %s', async (_title, cert, key, message) => {
    const error = await read(cert, key).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'E_OPTION_INVALID', message: expect.stringContaining(message) })
  })

  it('names the file and the reason when a file cannot be read', async () => {
    const certFile = fileOf(pair.cert)
    const missing = path.join(folder, 'missing.pem')
    await expect(readCertificate({ certFile: missing, keyFile: certFile })).rejects.toThrow(
      `tls.certFile: cannot read ${missing} (ENOENT)`,
    )
    await expect(readCertificate({ certFile, keyFile: folder })).rejects.toThrow(
      `tls.keyFile: cannot read ${folder} (EISDIR)`,
    )
  })
})

describe('certificateWarnings', () => {
  async function warningsOf(options: Partial<CertificateOptions>, nowMs = Date.now()): Promise<readonly string[]> {
    const { cert, key } = await makeCertificate({ names: NAMES, ...options })
    return certificateWarnings(await read(cert, key), nowMs)
  }

  it('are none for a good certificate', async () => {
    expect(await warningsOf({})).toEqual([])
  })

  it('say that it has expired, and that it is not valid yet', async () => {
    expect(await warningsOf({ days: -3 })).toEqual([expect.stringMatching(/expired on \d{4}-\d\d-\d\d: /)])
    expect(await warningsOf({}, Date.now() + 30 * DAY_MS)).toEqual([expect.stringContaining('expired on')])
    expect(await warningsOf({ startsInDays: 5 })).toEqual([expect.stringContaining('until then, clients refuse it')])
  })

  it('say that it names no host', async () => {
    expect(await warningsOf({ names: [] })).toEqual([expect.stringContaining('no subject alternative name')])
  })

  it('say that a certificate of the chain did not issue the one before it', async () => {
    const issuer = await makeCertificate({ names: ['issuer.example.com'], isIssuer: true })
    const { cert, key } = await makeCertificate({ names: NAMES, issuer })
    expect(certificateWarnings(await read(cert + issuer.cert, key), Date.now())).toEqual([])
    expect(certificateWarnings(await read(cert + other.cert, key), Date.now())).toEqual([
      expect.stringContaining('certificate 2 in'),
    ])
  })

  it.skipIf(process.platform === 'win32')('say that everybody can read the key', async () => {
    expect(certificateWarnings(await read(pair.cert, pair.key, 0o640), Date.now())).toEqual([])
    expect(certificateWarnings(await read(pair.cert, pair.key, 0o644), Date.now())).toEqual([
      expect.stringContaining('every user of this machine can read the private key'),
    ])
  })
})

it('describeCertificate has the names, and when it expires', async () => {
  const certificate = await read(pair.cert, pair.key)
  expect(describeCertificate(certificate)).toEqual({
    certFile: certificate.certFile,
    names: NAMES,
    validTo: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
  })
})
