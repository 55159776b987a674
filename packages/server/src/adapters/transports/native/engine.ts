import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { ERRORS, type ErrorCode, WebMQError } from 'webmq-client/protocol'
import { loadNativeEngine, type NativeCertificate, type NativeEngine } from 'webmq-native'
import { deferred } from '../../../kernel/base/deferred.js'
import { defined } from '../../../kernel/base/defined.js'
import type { TransportAddress, TransportStats } from '../../../kernel/ports/transport.js'
import type { TlsCertificate, TransportOptions } from '../../../kernel/ports/transport-options.js'
import { unixPathOf } from '../../../kernel/ports/unix-socket.js'
import { checkPort } from '../addresses.js'

/**
 * Loads the addon and starts its threads.
 * @param wake Called on the event loop when events wait.
 * @throws {WebMQError} `E_TRANSPORT_MISSING`, `E_OPTION_INVALID`, `E_TRANSPORT_FAILED`.
 */
export function createEngine(options: TransportOptions, wake: () => void): NativeEngine {
  const { compression, tls, ssePath, httpServer, probePaths, ...others } = options
  try {
    const Engine = loadNativeEngine()
    return new Engine(
      {
        ...others,
        ...defined({
          compressionThresholdBytes: compression?.thresholdBytes,
          tls: tls?.map(certificateOf),
          eventStreamPath: ssePath,
        }),
        handsHttpOver: httpServer !== undefined,
      },
      wake,
    )
  } catch (error) {
    throw errorOf(error)
  }
}

/** Gives an engine other certificates. @throws {WebMQError} `E_OPTION_INVALID`; the old ones stay. */
export function setCertificates(engine: NativeEngine, certificates: readonly TlsCertificate[]): void {
  try {
    engine.setCertificates(certificates.map(certificateOf))
  } catch (error) {
    throw errorOf(error)
  }
}

function certificateOf({ cert, key }: TlsCertificate): NativeCertificate {
  return { cert, key }
}

/**
 * What makes an engine listen; host names are looked up before.
 * @throws {WebMQError} `E_OPTION_INVALID`, `E_ADDRESS_UNAVAILABLE`.
 */
export async function listenerOn(host: string, port: number): Promise<(engine: NativeEngine) => TransportAddress> {
  checkPort(port)
  const path = unixPathOf(host)
  if (path === undefined) {
    const address = await resolveAddress(host)
    return (engine) => engine.listen(address, port)
  }
  return (engine) => {
    engine.listenUnix(path)
    return { host, port: 0 }
  }
}

async function resolveAddress(host: string): Promise<string> {
  if (isIP(host) !== 0) return host
  try {
    return (await lookup(host)).address
  } catch (cause) {
    throw new WebMQError('E_ADDRESS_UNAVAILABLE', { detail: host, cause })
  }
}

export function errorOf(error: unknown): Error {
  if (error instanceof WebMQError) return error
  const detail = error instanceof Error ? error.message : String(error)
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
  return new WebMQError(isErrorCode(code) ? code : 'E_TRANSPORT_FAILED', { detail, cause: error })
}

function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERRORS, code)
}

export const NO_STATS: TransportStats = {
  connections: 0,
  acceptedCount: 0,
  refusedCount: 0,
  fullCount: 0,
  connectionLimit: 0,
  proxyHeaderRefusedCount: 0,
  closedCount: 0,
  slowConsumerCount: 0,
  conflatedCount: 0,
  droppedCount: 0,
  receivedMessageCount: 0,
  answeredMessageCount: 0,
  receivedByteCount: 0,
  deliveredCount: 0,
  sentByteCount: 0,
  partialBytes: 0,
  restartedThreadCount: 0,
  outboxBytes: 0,
}

export function statsOf(engine: NativeEngine): TransportStats {
  const { restartCount, ...stats } = engine.stats()
  return { ...stats, restartedThreadCount: restartCount }
}

/** Counts the engine's threads down to none. */
export class ThreadCountdown {
  #over = deferred()
  #count = 0

  begin(count: number): void {
    this.#count = count
    this.#over = deferred()
  }

  oneLess(): void {
    if (this.#count > 0) this.#count--
    if (this.#count === 0) this.#over.resolve()
  }

  async over(): Promise<void> {
    if (this.#count > 0) await this.#over.promise
  }
}

/** Why the native engine does not load here, and how to get it; `undefined` when it does. */
export function reasonWhyNativeIsMissing(): string | undefined {
  try {
    loadNativeEngine()
    return undefined
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'E_TRANSPORT_MISSING') throw error
    return 'reason' in error && typeof error.reason === 'string' ? error.reason : error.message
  }
}
