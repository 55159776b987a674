import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TlsCertificate } from 'webmq-server/ports'

/** A certificate and its key, as PEM. */
export interface CertificatePem {
  readonly cert: string
  readonly key: string
}

/** Makes a certificate of these names: host names, wildcards, IP addresses. */
export type MakeCertificate = (options: {
  readonly names: readonly string[]
  /** Signs it; default: it signs itself. */
  readonly issuer?: CertificatePem
  /** May sign others. */
  readonly isIssuer?: boolean
}) => Promise<CertificatePem>

/** Certificates in a folder of their own. */
export class CertificateFolder {
  readonly #make: MakeCertificate
  readonly #path = mkdtempSync(path.join(tmpdir(), 'webmq-tls-'))
  #count = 0

  constructor(make: MakeCertificate) {
    this.#make = make
  }

  /** A certificate of these names that signs itself. */
  async certificate(...names: string[]): Promise<TlsCertificate> {
    return this.write(await this.#make({ names }))
  }

  /** Certificates of the same names, which one issuer signs; `ca` is that of the issuer. */
  async signed(count: number, ...names: string[]): Promise<{ ca: string; certificates: TlsCertificate[] }> {
    const issuer = await this.#make({ names: ['issuer.example.com'], isIssuer: true })
    const pairs = await Promise.all(Array.from({ length: count }, () => this.#make({ names, issuer })))
    return { ca: issuer.cert, certificates: pairs.map((pair) => this.write(pair)) }
  }

  /** Puts a pair into files. */
  write({ cert, key }: CertificatePem): TlsCertificate {
    this.#count++
    const certFile = path.join(this.#path, `${this.#count}.cert.pem`)
    const keyFile = path.join(this.#path, `${this.#count}.key.pem`)
    writeFileSync(certFile, cert)
    writeFileSync(keyFile, key)
    return { certFile, keyFile, cert: Buffer.from(cert), key: Buffer.from(key) }
  }

  remove(): void {
    rmSync(this.#path, { recursive: true })
  }
}
