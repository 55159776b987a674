import type { TransportOptions } from '../../ports/transport-options.js'

/** Reasons to refuse a valid upgrade. */
export interface UpgradeGate {
  readonly handshakeTimeoutMs: TransportOptions['handshakeTimeoutMs']
  readonly maxHeaderBytes: TransportOptions['maxHeaderBytes']
  readonly hasCompression: boolean
  /** Whether another connection exceeds the limit, including pending ones. */
  isFull(pendingCount: number): boolean
}
