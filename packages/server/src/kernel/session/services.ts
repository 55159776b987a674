import type { TextServerMessage } from 'webmq-client/protocol'
import type { Measurements } from '../../features/observing/measuring/measurements.js'
import type { Observer } from '../../features/observing/observer.js'
import type { Deadlines } from '../base/deadlines.js'
import type { Logger } from '../base/logger.js'
import type { HookPort } from '../identity/hook-port.js'
import type { TokenVerifier } from '../identity/index.js'
import type { Revocations } from '../identity/revocations.js'
import type { Broker } from '../ports/broker.js'
import type { KeyRules } from '../ports/key-rules.js'
import type { OverflowRules } from '../ports/overflow-rules.js'
import type { Transport } from '../ports/transport.js'
import type { Behind, PendingByClient } from '../publishing/author.js'
import type { Publisher } from '../publishing/publisher.js'
import type { Drains } from '../replay/drains.js'
import type { ReplaySender } from '../replay/sender.js'
import type { Delivery } from '../routing/delivery.js'
import type { ListensContext } from '../routing/listens.js'
import type { ConnectionCounts } from './connection-counts.js'
import type { EffectiveLimits } from './effective-limits.js'
import type { UserListens } from './listen-room.js'
import type { Session } from './session.js'
import type { Turns } from './work/turns.js'

/** What a feature keeps for connections. */
export interface SessionFeature {
  /** The session has a new identity: ends what it does not allow, and tells the client. */
  revoke?(session: Session): void
  /** The connection has closed. @param isWanted The client closed it for good, and will not come back to this session. */
  closed?(session: Session, isWanted: boolean): void
}

export interface SessionServices extends ListensContext {
  readonly transport: Pick<Transport, 'send' | 'join' | 'leave' | 'setOverflow' | 'prepareAnswer' | 'close'>
  readonly broker: Pick<Broker, 'capabilities' | 'publish' | 'read' | 'position'>
  readonly replays: ReplaySender
  readonly delivery: Pick<Delivery, 'isTellingGap' | 'tellGapBeforeLeaving'>
  readonly overflowRules: OverflowRules
  readonly metaRules: KeyRules
  /** In the order in which they hear of a session. */
  readonly features: readonly SessionFeature[]
  readonly drains: Pick<Drains, 'await' | 'drained' | 'release'>
  readonly turns: Pick<Turns<Session>, 'queueOf' | 'release'>
  readonly verifier: TokenVerifier | undefined
  /** Absent without any hook. */
  readonly hooks?: HookPort | undefined
  readonly users: Pick<ConnectionCounts, 'enter' | 'leave'>
  readonly revocations: Pick<Revocations, 'covers'>
  readonly deadlines: Pick<Deadlines, 'now' | 'set' | 'clear'>
  /** Of tokens, in Unix time. */
  readonly expiries: Pick<Deadlines, 'set' | 'clear'>
  readonly limits: EffectiveLimits
  readonly publisher: Pick<Publisher, 'publish' | 'request'>
  /** Later messages of the session wait. @param decided Never rejects. */
  readonly hold: (session: Session, decided: Promise<void>, behind?: Behind) => void
  readonly pendingByClient: PendingByClient
  readonly userListens: Pick<UserListens, 'assertRoom' | 'add'>
  readonly measurements: Measurements
  /** Absent when nobody wants to know. */
  readonly observer: Observer | undefined
  /** Whether messages of this key are logged. */
  readonly isLogged: (key: string) => boolean
  readonly logger: Logger
  /** Of the sessions of these services; default `websocket`. */
  readonly door?: 'sse'
  /** Encodes messages of the server for them; default: for WebSockets. */
  readonly encode?: (message: TextServerMessage) => string
  /** Unix time in milliseconds. */
  readonly now: () => number
}
