import { stat } from 'node:fs/promises'
import type { Logger } from '../logger.js'
import type { Transport } from '../ports/transport.js'
import { type CertificateFiles, type ReadCertificate, readCertificate } from './read-certificate.js'
import { certificateWarnings, describeCertificate, validToMs } from './warnings.js'

/**
 * Time between two looks at the files. Looking works where notifications do not: on network volumes, and where Kubernetes
 * exchanges a link above them. Cost: one `stat` per file.
 */
const CHECK_INTERVAL_MS = 5_000

/** Counters since the start, and the present certificates. */
export interface CertificateStats {
  /** When the first of them expires, since 1970. */
  readonly firstExpiryMs: number
  readonly reloadCount: number
  /** Changed files that could not be used; the old certificates stayed. */
  readonly failedReloadCount: number
}

/** What a {@link CertificateStore} works with. */
export interface CertificateContext {
  readonly files: readonly CertificateFiles[]
  readonly logger: Logger
  /** Default: 5 s. */
  readonly checkIntervalMs?: number
}

/**
 * The certificates of a server and their files. New files replace the certificates while the server runs. A pair that does
 * not fit is often one of which half is written, as certbot does; it gets one more interval before that counts as a failure.
 */
export class CertificateStore {
  readonly #context: CertificateContext
  #certificates: readonly ReadCertificate[] = []
  /** States of the files: of the present certificates, of a first attempt that failed, and of one that was reported. */
  #usedState = ''
  #failedState: string | undefined
  #refusedState: string | undefined
  #timer: NodeJS.Timeout | undefined
  #checking: Promise<void> | undefined
  #hasSaidExpired = false
  #reloadCount = 0
  #failedReloadCount = 0

  constructor(context: CertificateContext) {
    this.#context = context
  }

  get certificates(): readonly ReadCertificate[] {
    return this.#certificates
  }

  /**
   * Reads the files for the first time, and logs warnings.
   * @throws {WebMQError} `E_OPTION_INVALID`.
   */
  async load(): Promise<void> {
    // Before the files are read: what changes in between is found by the first check.
    this.#usedState = await this.#stateOfFiles()
    this.#use(await this.#read())
  }

  /** Looks at the files from now on, until `stop`. */
  watch(transport: Transport): void {
    const { checkIntervalMs = CHECK_INTERVAL_MS } = this.#context
    this.#timer = setInterval(() => {
      this.#checking ??= this.#check(transport).finally(() => {
        this.#checking = undefined
      })
    }, checkIntervalMs)
    this.#timer.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  stats(): CertificateStats {
    return {
      firstExpiryMs: Math.min(...this.#certificates.map(({ chain: [server] }) => validToMs(server))),
      reloadCount: this.#reloadCount,
      failedReloadCount: this.#failedReloadCount,
    }
  }

  async #check(transport: Transport): Promise<void> {
    this.#sayWhenExpired()
    const state = await this.#stateOfFiles()
    if (state === this.#usedState || state === this.#refusedState || this.#timer === undefined) return
    try {
      await this.#replace(transport)
      this.#usedState = state
      this.#refusedState = undefined
    } catch (err) {
      const isFirstFailure = state !== this.#failedState
      this.#failedState = state
      if (isFirstFailure) return
      this.#refusedState = state
      this.#failedReloadCount++
      this.#context.logger.error({ err }, 'the new TLS certificate cannot be used; the old one stays')
    }
  }

  async #replace(transport: Transport): Promise<void> {
    const { logger } = this.#context
    const certificates = await this.#read()
    // The server may have stopped while the files were read.
    if (this.#timer === undefined || isSame(certificates, this.#certificates)) return
    if (transport.setCertificates === undefined) {
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
    return await Promise.all(this.#context.files.map(readCertificate))
  }

  #use(certificates: readonly ReadCertificate[]): void {
    this.#certificates = certificates
    for (const certificate of certificates) {
      for (const warning of certificateWarnings(certificate, Date.now())) this.#context.logger.warn(warning)
    }
  }

  #sayWhenExpired(): void {
    const isExpired = Date.now() > this.stats().firstExpiryMs
    if (isExpired && !this.#hasSaidExpired) {
      this.#context.logger.error('a TLS certificate has expired: clients refuse it')
    }
    this.#hasSaidExpired = isExpired
  }

  /** A text that changes when a file is written, replaced or reachable by another link. */
  async #stateOfFiles(): Promise<string> {
    const paths = this.#context.files.flatMap(({ certFile, keyFile }) => [certFile, keyFile])
    const states = await Promise.all(
      paths.map(async (path) => {
        try {
          const { ino, size, mtimeMs, ctimeMs } = await stat(path)
          return `${ino} ${size} ${mtimeMs} ${ctimeMs}`
        } catch (error) {
          return String(error)
        }
      }),
    )
    return states.join('\n')
  }
}

function isSame(some: readonly ReadCertificate[], others: readonly ReadCertificate[]): boolean {
  return some.every(({ cert, key }, index) => others[index]?.cert.equals(cert) && others[index].key.equals(key))
}
