import { MESSAGE_OVERHEAD_BYTES } from 'webmq-client/protocol'
import { isForThisMachineOnly } from '../../doors/options/access.js'
import { createEventStreams } from '../../doors/sse/door.js'
import { BrokerWatch } from '../../features/observing/health/broker-watch.js'
import { logBug } from '../base/log-bug.js'
import { withoutPasswords } from '../ports/broker-address.js'
import { OverflowRules } from '../ports/overflow-rules.js'
import { ReplaySender } from '../replay/sender.js'
import { ConnectionCounts } from '../session/connection-counts.js'
import { Dispatcher } from '../session/dispatcher.js'
import { configuredLimitsOf, EffectiveLimits } from '../session/effective-limits.js'
import { Gateway } from '../session/gateway/gateway.js'
import { kernelVerbs } from '../session/handlers/index.js'
import { rowsOf, type Summary, verbsOf } from './features.js'
import type { NodePhase, ServerNodeParts } from './parts.js'
import { assembleBelow, type Below } from './rooms.js'
import type { StopList } from './stop-list.js'
import { VERSION } from './version.js'

export type Rooms = ReturnType<typeof assemble>

/**
 * Creates the rooms of a node, from the ground up. Nothing runs yet.
 * @param stops Gets what each room does at the end, as the room is made: they stop in the reverse order.
 */
export function assemble(parts: ServerNodeParts, phase: NodePhase, stops: StopList, summary: Summary) {
  const below = assembleBelow(parts, stops, summary)
  return { ...below, ...assembleDoors(parts, phase, below, stops) }
}

/** Connections: who may have one, and what its messages do. */
function assembleDoors(parts: ServerNodeParts, phase: NodePhase, below: Below, stops: StopList) {
  const { options, transport, verifier, hooks, logger, name, events, observer, proxies } = parts
  const { broker, deadlines, delivery, drains, expiries, features, interest, isLogged, liveBuffers, measurements } =
    below
  const { listensChanged, metaRules, pendingByClient, publisher, refusals, sessions, userListens } = below
  const address = typeof options.broker === 'string' ? options.broker : undefined
  const watch = new BrokerWatch({
    broker,
    ...(address === undefined || address === broker.name ? {} : { address: withoutPasswords(address) }),
    hideSecrets: (text) => phase.hideSecrets(text),
    logger,
    onChange: (change) => events.emit('broker', change),
  })
  const { maxOutboxBytes, handshakeTimeoutMs } = options
  const maxMessageBytes = options.maxPayloadBytes + MESSAGE_OVERHEAD_BYTES
  const limits = new EffectiveLimits(configuredLimitsOf(options))
  const dispatcher = new Dispatcher({
    transport,
    limits: limits.defaults,
    refusals,
    publishes: measurements.publishes,
    maxMessageBytes,
    verbs: { ...kernelVerbs, ...verbsOf(features) },
    hooks: hooks?.has('listen', 'publish', 'presence') === true ? hooks : undefined,
    onError: (err) => logBug(logger, { err }, 'messages that waited could not be handled'),
  })
  stops.add({ name: 'turns', stop: () => dispatcher.turns.stop() })
  const addresses = new ConnectionCounts(options.maxConnectionsPerAddress, 'maxConnectionsPerAddress')
  const users = new ConnectionCounts(options.maxConnectionsPerUser, 'maxConnectionsPerUser')
  const replays = new ReplaySender({ transport, drains, maxOutboxBytes, maxMessageBytes })
  const gateway = new Gateway({
    path: options.path,
    get origins() {
      return phase.origins.origins
    },
    get ownHosts() {
      return phase.origins.ownHosts
    },
    ...(options.tokenCookie === undefined ? undefined : { tokenCookie: options.tokenCookie }),
    isOutsider: (request) =>
      isForThisMachineOnly(options) && !proxies.isLocal(request.remoteAddress, (name) => request.header(name)),
    insecure: options.insecure,
    proxies,
    addresses,
    transport,
    sessions,
    eventStreams: createEventStreams({ node: name, version: VERSION, follower: features.streams.follower }),
    dispatcher,
    refusals,
    handshakeTimeoutMs,
    node: name,
    version: VERSION,
    heartbeatMs: options.pingIntervalMs,
    dedupe: { dedupeWindowMs: options.dedupeWindowMs, dedupeMaxIds: options.dedupeMaxIds },
    drainRetryAfterMs: () =>
      phase.drainEndMs === undefined ? undefined : Math.max(0, phase.drainEndMs - performance.now()),
    services: {
      transport,
      broker,
      replays,
      drains,
      delivery,
      overflowRules: new OverflowRules(options.overflow),
      metaRules,
      features: rowsOf(features).map(([, feature]) => feature),
      occupancy: features.occupancy,
      turns: dispatcher.turns,
      verifier,
      hooks,
      observer,
      measurements,
      users,
      interest,
      liveBuffers,
      maxLiveBufferBytes: maxOutboxBytes,
      revocations: features.cluster.revocations,
      deadlines,
      expiries,
      publisher,
      hold: (session, decided, behind) => dispatcher.waitFor(session, decided, behind),
      pendingByClient,
      userListens,
      listensChanged,
      limits,
      isLogged,
      logger,
      now: Date.now,
    },
  })
  return { addresses, dispatcher, gateway, limits, users, watch }
}
