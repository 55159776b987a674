import { encodeServerMessage, MAX_KEY_BYTES, type Welcome } from 'webmq-client/protocol'
import { ANONYMOUS, type Identity } from '../../identity/index.js'
import type { SessionLimits } from '../effective-limits.js'
import type { SessionServices } from '../services.js'
import type { Session } from '../session.js'

export interface WelcomesContext {
  readonly node: string
  readonly version: string
  readonly heartbeatMs: number
  /** How long and how many message ids are remembered. */
  readonly dedupe: Pick<Welcome['limits'], 'dedupeWindowMs' | 'dedupeMaxIds'>
  readonly services: Pick<SessionServices, 'verifier' | 'limits'>
}

export class Welcomes {
  readonly #context: WelcomesContext
  #shared: { [auth in Welcome['auth']]?: string } = {}

  constructor(context: WelcomesContext) {
    this.#context = context
  }

  /** The limits have changed: newcomers get the present ones. */
  limitsChanged(): void {
    this.#shared = {}
  }

  message(session: Session): string {
    const { verifier } = this.#context.services
    const auth = verifier === undefined ? 'none' : session.state === 'active' ? 'done' : 'required'
    const { identity } = session
    this.#shared[auth] ??= this.#upToSession(auth, ANONYMOUS)
    const upToSession = identity?.limits === undefined ? this.#shared[auth] : this.#upToSession(auth, identity)
    const expiresInMs = session.expiresInMs()
    return `${upToSession}${session.id}"${expiresInMs === undefined ? '' : `,"expiresInMs":${expiresInMs}`}}`
  }

  /** The text up to the session id, which all sessions share that have the limits of the options. */
  #upToSession(auth: Welcome['auth'], identity: Identity): string {
    const { services, node, version, heartbeatMs, dedupe } = this.#context
    const limits = { ...welcomeLimits(services.limits.of(identity)), ...dedupe }
    const shared = { protocol: 'webmq.v1', auth, node, version, heartbeatMs, limits } as const
    return encodeServerMessage({ verb: 'welcome', ...shared, session: '' }).slice(0, -'"}'.length)
  }
}

/** The limits that `welcome` tells a client, without those of message ids. */
function welcomeLimits(limits: SessionLimits): Omit<Welcome['limits'], 'dedupeWindowMs' | 'dedupeMaxIds'> {
  const { ofConnection, ofUser } = limits.publishing ?? {}
  // Members that are undefined are left out.
  return {
    maxPayloadBytes: limits.maxPayloadBytes,
    maxKeyBytes: MAX_KEY_BYTES,
    maxWords: limits.maxWords,
    maxHashes: limits.maxHashes,
    maxListensPerConnection: limits.maxListensPerConnection,
    maxSearchListensPerConnection: limits.maxSearchListensPerConnection,
    maxRequestsPerConnection: limits.maxRequestsPerConnection,
    maxListensPerUser: limits.maxListensPerUser,
    maxPublishesPerSecond: ofConnection?.perSecond,
    maxPublishBytesPerSecond: ofConnection?.bytesPerSecond,
    maxPublishesPerSecondPerUser: ofUser?.perSecond,
    maxPublishBytesPerSecondPerUser: ofUser?.bytesPerSecond,
    publishBurstMs: ofConnection?.burstMs,
    maxPendingPublishBytes: limits.maxPendingPublishBytes,
    streamLeaseMs: limits.streamLeaseMs,
    maxStreamBytes: limits.maxStreamBytes,
    workPerSecond: limits.workPerSecond,
    workBurst: limits.workBurst,
  }
}
