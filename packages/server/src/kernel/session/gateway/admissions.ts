import type { Deadline } from '../../base/deadlines.js'
import type { ConnectFacts } from '../../identity/actor.js'
import { countedAddress } from '../../identity/client-address.js'
import type { Identity } from '../../identity/index.js'
import type { UpgradeId, UpgradeRequest } from '../../ports/transport.js'
import type { ConnectionCounts } from '../connection-counts.js'
import type { SessionServices } from '../services.js'
import type { AskedEventStream } from './event-streams.js'

/** An upgrade that passed the checks, and whose connection is not open yet. */
export interface Admission {
  /** Of the client. */
  readonly address: string
  /** Absent while the server waits for a token. */
  identity: Identity | undefined
  /** Why the token was refused. The session tells the client with a close code, which browsers can see. */
  refusal: unknown
  /** For the hook `connect`, if there is one. */
  readonly facts: ConnectFacts | undefined
  sinceMs: number
  /** Present: an event stream. */
  readonly stream: AskedEventStream | undefined
}

export interface AdmissionsContext {
  readonly addresses: Pick<ConnectionCounts, 'enter' | 'leave'>
  /** An upgrade that takes longer than this never opens. */
  readonly handshakeTimeoutMs: number
  readonly services: Pick<SessionServices, 'hooks' | 'deadlines'>
}

/** The transport ends an upgrade at most this much after `handshakeTimeoutMs`. */
const TRANSPORT_DELAY_MS = 1_000

/** Upgrades that are not open yet. They count as connections of their address. */
export class Admissions {
  readonly #context: AdmissionsContext
  readonly #limitMs: number
  /** Oldest first. */
  readonly #waiting = new Map<UpgradeId, Admission>()
  #expiry: Deadline | undefined

  constructor(context: AdmissionsContext) {
    this.#context = context
    this.#limitMs = context.handshakeTimeoutMs + TRANSPORT_DELAY_MS
  }

  /** @throws {WebMQError} `E_CONNECTION_LIMIT`: the address has too many. */
  add(request: UpgradeRequest, address: string, stream: AskedEventStream | undefined): void {
    this.#expire()
    const { services, addresses } = this.#context
    const counted = countedAddress(address)
    if (counted !== undefined) addresses.enter(counted)
    const sinceMs = services.deadlines.now()
    const facts = services.hooks?.has('connect') === true ? factsOf(request) : undefined
    this.#waiting.set(request.id, { address, identity: undefined, refusal: undefined, facts, sinceMs, stream })
    this.#expireLater()
  }

  /** Sets what a session begins with. Returns `false` when the upgrade has ended meanwhile: the token took too long. */
  decide(upgrade: UpgradeId, identity: Identity | undefined, refusal: unknown): boolean {
    const admission = this.#waiting.get(upgrade)
    if (admission === undefined) return false
    admission.identity = identity
    admission.refusal = refusal
    const nowMs = this.#context.services.deadlines.now()
    if (nowMs === admission.sinceMs) return true
    admission.sinceMs = nowMs
    // Last in the order of expiry.
    this.#waiting.delete(upgrade)
    this.#waiting.set(upgrade, admission)
    return true
  }

  /** Takes out an upgrade whose connection opens. Its address still counts, until {@link leave}. */
  take(upgrade: UpgradeId): Admission | undefined {
    const admission = this.#waiting.get(upgrade)
    this.#waiting.delete(upgrade)
    return admission
  }

  /** A connection or an upgrade of this address has ended. */
  leave(address: string): void {
    const counted = countedAddress(address)
    if (counted !== undefined) this.#context.addresses.leave(counted)
  }

  /** Removes upgrades whose clients went away: the transport reports no end of one that was not accepted. */
  #expire(): void {
    const latestMs = this.#context.services.deadlines.now() - this.#limitMs
    for (const [id, { sinceMs, address }] of this.#waiting) {
      if (sinceMs > latestMs) return
      this.#waiting.delete(id)
      this.leave(address)
    }
  }

  #expireLater(): void {
    const { deadlines } = this.#context.services
    this.#expiry ??= deadlines.set(deadlines.now() + this.#limitMs, () => {
      this.#expiry = undefined
      this.#expire()
      if (this.#waiting.size > 0) this.#expireLater()
    })
  }
}

/** All headers are parsed for them. */
function factsOf({ path, query, headers }: UpgradeRequest): ConnectFacts {
  return { path, query, headers }
}
