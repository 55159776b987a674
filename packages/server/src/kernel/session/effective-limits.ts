import { MESSAGE_OVERHEAD_BYTES } from 'webmq-client/protocol'
import type { ResolvedOptions } from '../../doors/options/server-options.js'
import type { Identity } from '../identity/index.js'
import type { LimitName } from '../identity/limit-overrides.js'
import type { WordLimits } from '../ports/word-limits.js'
import type { AuthorLimits } from '../publishing/author.js'
import { isLimited, type PublishLimits } from '../publishing/publish-rates.js'
import type { WorkLimits } from './work/session-queue.js'

export interface SessionLimits extends AuthorLimits, WordLimits, WorkLimits {
  readonly maxListensPerConnection: number
  /** Of these, patterns with a `#` before their last word. */
  readonly maxSearchListensPerConnection: number
  /** Requests of one connection that wait for a reply. */
  readonly maxRequestsPerConnection: number
  readonly authTimeoutMs: number
  /** Of one user to this node. */
  readonly maxConnectionsPerUser: number
  /** Of all connections of one user to this node; absent: any. */
  readonly maxListensPerUser: number | undefined
  readonly streamLeaseMs: number
  readonly maxStreamBytes: number
}

/** The limits that the options say, of which tokens may replace some. */
export type ConfiguredLimits = Omit<SessionLimits, 'publishing'> & {
  readonly [Name in Exclude<LimitName, keyof SessionLimits>]: number | undefined
} & { readonly publishBurstMs: number }

/** The limits of each identity: those of the options, or those of its token. */
export class EffectiveLimits {
  /** Of everybody whose token says nothing about limits. */
  readonly defaults: SessionLimits
  #configured: ConfiguredLimits
  #others = new WeakMap<Identity, SessionLimits>()

  constructor(configured: ConfiguredLimits) {
    this.#configured = configured
    this.defaults = limitsOf(configured)
  }

  /** Other options hold from now on, for open connections too. */
  change(configured: ConfiguredLimits): void {
    this.#configured = configured
    this.#others = new WeakMap()
    Object.assign(this.defaults, limitsOf(configured))
  }

  /** Cost: a look-up, only for tokens with limits. */
  of(identity: Identity): SessionLimits {
    if (identity.limits === undefined) return this.defaults
    let limits = this.#others.get(identity)
    if (limits === undefined) {
      limits = limitsOf({ ...this.#configured, ...identity.limits })
      this.#others.set(identity, limits)
    }
    return limits
  }
}

function limitsOf(configured: ConfiguredLimits): SessionLimits {
  return { ...configured, publishing: publishLimitsOf(configured) }
}

/** `undefined` when nothing is limited: then a publish costs one look at this. */
function publishLimitsOf(configured: ConfiguredLimits): PublishLimits | undefined {
  const { publishBurstMs: burstMs } = configured
  const ofConnection = {
    perSecond: configured.maxPublishesPerSecond,
    bytesPerSecond: configured.maxPublishBytesPerSecond,
    burstMs,
  }
  const ofUser = {
    perSecond: configured.maxPublishesPerSecondPerUser,
    bytesPerSecond: configured.maxPublishBytesPerSecondPerUser,
    burstMs,
  }
  return isLimited(ofConnection) || isLimited(ofUser) ? { ofConnection, ofUser } : undefined
}

/** Share of the pending bytes that one connection may use. */
const PENDING_SHARE = 1 / 8

/** Limits of connections without a token, or whose token says nothing else. */
export function configuredLimitsOf(options: ResolvedOptions): ConfiguredLimits {
  const maxMessageBytes = options.maxPayloadBytes + MESSAGE_OVERHEAD_BYTES
  return {
    maxPayloadBytes: options.maxPayloadBytes,
    maxConnectionsPerUser: options.maxConnectionsPerUser,
    maxListensPerUser: options.maxListensPerUser,
    maxPublishesPerSecond: options.maxPublishesPerSecond,
    maxPublishBytesPerSecond: options.maxPublishBytesPerSecond,
    maxPublishesPerSecondPerUser: options.maxPublishesPerSecondPerUser,
    maxPublishBytesPerSecondPerUser: options.maxPublishBytesPerSecondPerUser,
    publishBurstMs: options.publishBurstMs,
    maxListensPerConnection: options.maxListensPerConnection,
    maxSearchListensPerConnection: options.maxSearchListensPerConnection,
    maxRequestsPerConnection: options.maxRequestsPerConnection,
    maxWords: options.maxWords,
    maxHashes: options.maxHashes,
    maxPendingPublishBytes: Math.max(Math.floor(options.brokerMaxPendingBytes * PENDING_SHARE), maxMessageBytes),
    streamLeaseMs: options.streamLeaseMs,
    maxStreamBytes: Math.min(options.maxStreamBytes, options.maxOutboxBytes / 2),
    authTimeoutMs: options.authTimeoutMs,
    workPerSecond: options.workPerSecond,
    workBurst: options.workBurst,
  }
}
