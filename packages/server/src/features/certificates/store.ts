import { FileWatch } from '../../kernel/base/file-watch.js'
import type { Logger } from '../../kernel/base/logger.js'
import type { Transport } from '../../kernel/ports/transport.js'
import {
  type CertificateFiles,
  certificateWarnings,
  describeCertificate,
  type ReadCertificate,
  readCertificate,
  validToMs,
} from './read-certificate.js'

export interface CertificateStats {
  /** When the first of them expires, since 1970. */
  readonly firstExpiryMs: number
  readonly reloadCount: number
  /** Changed files that could not be used; the old certificates stayed. */
  readonly failedReloadCount: number
  /** The changed files cannot be used. */
  readonly isRefused: boolean
}

/** The certificates of a server and their files. New files replace the certificates while the server runs. */
export class CertificateStore {
  readonly #files: readonly CertificateFiles[]
  readonly #logger: Logger
  readonly #watch: FileWatch
  certificates: readonly ReadCertificate[] = []
  /** New ones of which the log has told that the transport cannot take them. */
  #untaken: readonly ReadCertificate[] = []
  #transport: Transport | undefined
  #hasSaidExpired = false
  #reloadCount = 0
  #failedReloadCount = 0

  constructor(files: readonly CertificateFiles[], logger: Logger, checkIntervalMs?: number) {
    this.#files = files
    this.#logger = logger
    this.#watch = new FileWatch({
      paths: () => files.flatMap(({ certFile, keyFile }) => [certFile, keyFile]),
      looked: () => this.#sayWhenExpired(),
      use: () => this.#replace(),
      refused: (err) => {
        this.#failedReloadCount++
        logger.error({ err }, 'the new TLS certificate cannot be used; the old one stays')
      },
      checkIntervalMs,
    })
  }

  /** Reads the files for the first time, and logs warnings. @throws {WebMQError} `E_OPTION_INVALID`. */
  async load(): Promise<void> {
    await this.#watch.remember()
    this.#use(await this.#read())
  }

  /** Looks at the files from now on, until `stop`. */
  watch(transport: Transport): void {
    this.#transport = transport
    this.#watch.start()
  }

  check(): void {
    this.#watch.check()
  }

  stop(): void {
    this.#watch.stop()
  }

  stats(): CertificateStats {
    return {
      firstExpiryMs: Math.min(...this.certificates.map(({ chain: [server] }) => validToMs(server))),
      reloadCount: this.#reloadCount,
      failedReloadCount: this.#failedReloadCount,
      isRefused: this.#watch.isRefused,
    }
  }

  get defect(): 'refused' | 'expired' | undefined {
    if (this.certificates.length > 0 && Date.now() > this.stats().firstExpiryMs) return 'expired'
    return this.#watch.isRefused ? 'refused' : undefined
  }

  async #replace(): Promise<void> {
    const logger = this.#logger
    const transport = this.#transport
    const certificates = await this.#read()
    // The server may have stopped while the files were read.
    if (!this.#watch.isRunning || transport === undefined || isSame(certificates, this.certificates)) return
    if (transport.setCertificates === undefined) {
      if (isSame(certificates, this.#untaken)) return
      this.#untaken = certificates
      logger.warn(
        { transport: transport.name },
        'the TLS certificate has changed; this transport takes it at its next start',
      )
      return
    }
    transport.setCertificates(certificates)
    this.#reloadCount++
    this.#hasSaidExpired = false
    this.#use(certificates)
    logger.info({ certificates: certificates.map(describeCertificate) }, 'new connections get the new TLS certificate')
  }

  async #read(): Promise<readonly ReadCertificate[]> {
    return await Promise.all(this.#files.map(readCertificate))
  }

  #use(certificates: readonly ReadCertificate[]): void {
    this.certificates = certificates
    for (const certificate of certificates) {
      for (const warning of certificateWarnings(certificate, Date.now())) this.#logger.warn(warning)
    }
  }

  #sayWhenExpired(): void {
    const isExpired = Date.now() > this.stats().firstExpiryMs
    if (isExpired && !this.#hasSaidExpired) {
      this.#logger.error('a TLS certificate has expired: clients refuse it')
    }
    this.#hasSaidExpired = isExpired
  }
}

function isSame(some: readonly ReadCertificate[], others: readonly ReadCertificate[]): boolean {
  return some.every(({ cert, key }, index) => others[index]?.cert.equals(cert) && others[index].key.equals(key))
}
