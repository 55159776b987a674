import { MESSAGE_OVERHEAD_BYTES } from 'webmq-client/protocol'
import { Deadlines } from '../base/deadlines.js'
import { andThen } from '../base/maybe-promise.js'
import { DeliveringBroker } from '../hooks/index.js'
import { PROCESS } from '../identity/actor.js'
import { Nodes } from '../nodes/index.js'
import { BrokerWatch } from '../observing/health/broker-watch.js'
import { FullWatch } from '../observing/health/full-watch.js'
import { Measurements } from '../observing/measuring/measurements.js'
import { Cluster, type NodeSummary } from '../operators/index.js'
import { isForThisMachineOnly } from '../options/access.js'
import type { ResolvedOptions } from '../options/options.js'
import { loggedKeysFingerprint, sharedOptionsFingerprint } from '../options/options.js'
import { KeyRules } from '../patterns/key-rules.js'
import { Router } from '../patterns/router.js'
import type { Broker } from '../ports/broker.js'
import { brokerNameOf, withoutPasswords } from '../ports/broker-address.js'
import { historyRulesOf } from '../ports/history-rules.js'
import { OverflowRules } from '../ports/overflow-rules.js'
import { retainRulesOf } from '../ports/retain-rules.js'
import { Occupancy, Presence } from '../presence/index.js'
import { type PendingByCaller, requestAuthor, trustedLimits } from '../publishing/author.js'
import { PublishRates } from '../publishing/publish-rates.js'
import { Publisher } from '../publishing/publisher.js'
import { Refusals } from '../publishing/refusals.js'
import { Stamps } from '../publishing/stamps.js'
import { WaitingRoom } from '../publishing/waiting-room.js'
import { GroupedBroker, QueueGroups } from '../queue-groups/index.js'
import { Drains } from '../replay/drains.js'
import { ReplaySender } from '../replay/sender.js'
import { Delivery } from '../routing/delivery.js'
import { type Listen, type LocalHandler, LocalListeners } from '../routing/in-process/listeners.js'
import type { LocalListenOptions } from '../routing/in-process/subscription.js'
import { Interest } from '../routing/interest.js'
import { LiveBuffers } from '../routing/live-buffers.js'
import { RefusedMessages } from '../routing/refused-messages.js'
import { ConnectionCounts } from '../session/connection-counts.js'
import { Dispatcher } from '../session/dispatcher.js'
import { configuredLimitsOf, EffectiveLimits } from '../session/effective-limits.js'
import { Gateway } from '../session/gateway/gateway.js'
import { UserListens } from '../session/listen-room.js'
import { StreamFeeds } from '../session/sse/stream-feed.js'
import { SessionTable } from '../session/table.js'
import { SharedStreams } from '../streams/shared-streams.js'
import { Streams } from '../streams/streams.js'
import type { NodePhase, ServerNodeParts } from './parts.js'
import { SessionEnder } from './session-ender.js'
import { VERSION } from './version.js'

/** When a node crashes, its members of queue groups are gone everywhere within this time. */
const MAX_TTL_MS = 10_000

export type Rooms = ReturnType<typeof assemble>

/**
 * Creates the rooms of a node, from the ground up. Nothing runs yet.
 * @param summary What other nodes are told of this one.
 */
export function assemble(parts: ServerNodeParts, phase: NodePhase, summary: () => NodeSummary) {
  const { options, transport, verifier, hooks, logger, name, events, observer, tracer, proxies } = parts
  const router = new Router()
  const sessions = new SessionTable()
  const ender = new SessionEnder(sessions)
  const userListens = new UserListens(sessions)
  const publishRates = new PublishRates()
  const pendingByCaller: PendingByCaller = new Map()
  const nodes = new Nodes({
    node: name,
    version: VERSION,
    fingerprint: sharedOptionsFingerprint(options),
    ...(parts.broker.log === undefined
      ? undefined
      : { log: { loggedKeys: loggedKeysFingerprint(options), log: parts.broker.log, missed: () => missed() } }),
    broker: parts.broker,
    maxPayloadBytes: options.maxPayloadBytes,
    ttlMs: Math.min(options.presenceTtlMs, MAX_TTL_MS),
    logger,
  })
  const groups = new QueueGroups({
    node: name,
    nodes,
    broker: parts.broker,
    maxPayloadBytes: options.maxPayloadBytes,
    maxPendingBytes: options.brokerMaxPendingBytes,
    waitMs: options.brokerTimeoutMs,
    dedupe: options,
    ...(hooks?.has('deliver') === true ? { delivered: (message) => hooks.deliver(message) } : undefined),
    logger,
  })
  const hasListeners = (key: string) => router.match(key).length > 0
  const hooked = hooks?.has('deliver') === true ? new DeliveringBroker(parts.broker, hooks, hasListeners) : parts.broker
  const broker = new GroupedBroker(hooked, groups)
  const liveBuffers = new LiveBuffers()
  const localListeners = new LocalListeners(logger, tracer)
  const metaRules = new KeyRules(options.meta)
  const urgentKeys = new KeyRules(options.urgent)
  const interest = new Interest({
    router,
    broker,
    maxPatternBytes: options.maxPatternBytes,
    onError: (err) => logger.error({ err }, 'a pattern could not be unbound'),
  })
  const deadlines = new Deadlines({ onError: (err) => logger.error({ err }, 'a deadline failed') })
  const measurements = new Measurements({ hasListeners })
  const { publishes, hooks: hookTimes } = measurements
  const refusals = new Refusals(observer)
  const trusted = trustedLimits(options)
  const author = requestAuthor(PROCESS, trusted, pendingByCaller)
  const waitingRoom = new WaitingRoom({
    room: broker.room,
    maxBytes: options.brokerMaxPendingBytes,
    warn: (facts, text) => logger.warn(facts, text),
  })
  const publisher = new Publisher({
    broker,
    groups,
    router,
    transport,
    hooks,
    waitingRoom,
    rates: publishRates,
    stamps: new Stamps(metaRules, Date.now),
    timings: publishes,
    tracer,
    observer,
  })
  const addListener: Listen = async (pattern, given) =>
    await andThen(interest.retain(pattern), ({ group }) => {
      const listener = { ...given, pattern, group }
      localListeners.add(listener)
      return () => {
        localListeners.remove(listener)
        interest.release(pattern)
      }
    })
  const listen = (pattern: string, handler: LocalHandler, { onGap }: LocalListenOptions) =>
    addListener(pattern, { handler, onGap })
  const isLogged = isLoggedBy(broker, options)
  const retained = retainRulesOf(options)
  const isRetained = (key: string) => broker.capabilities.retained && retained.has(key)
  const streams = new Streams({
    broker,
    isLogged,
    isRetained,
    publisher,
    author,
    listen: addListener,
    deadlines,
    limits: options,
    logger,
  })
  const sharedStreams = new SharedStreams({ streams, publisher, author })
  hooks?.measure((name, durationMs) => hookTimes[name].observe(durationMs))
  const delivery = new Delivery({ router, transport, liveBuffers, localListeners, publishes, urgentKeys })
  const missed = () => {
    delivery.gap('broker-lost')
    events.emit('gap', { reason: 'broker-lost' })
  }
  const address = typeof options.broker === 'string' ? options.broker : undefined
  const watch = new BrokerWatch({
    broker,
    ...(address === undefined || address === broker.name ? {} : { address: withoutPasswords(address) }),
    hideSecrets: (text) => phase.hideSecrets(text),
    logger,
    onChange: (change) => events.emit('broker', change),
  })
  const full = new FullWatch({ stats: () => transport.stats(), logger, observer })
  const { maxPayloadBytes, maxOutboxBytes, handshakeTimeoutMs } = options
  const limits = new EffectiveLimits(configuredLimitsOf(options))
  const dispatcher = new Dispatcher({
    transport,
    limits: limits.defaults,
    refusals,
    publishes,
    maxMessageBytes: maxPayloadBytes + MESSAGE_OVERHEAD_BYTES,
    hooks: hooks?.has('listen', 'publish', 'presence') === true ? hooks : undefined,
    onError: (err) => logger.error({ err }, 'messages that waited could not be handled'),
  })
  const refused = new RefusedMessages({ maxPayloadBytes, delivery, logger })
  const presence = new Presence({
    node: name,
    nodes,
    transport,
    limits: options,
    lingerMs: options.presenceLingerMs,
    maxPayloadBytes,
    logger,
  })
  const occupancy = parts.occupancy && new Occupancy({ ...parts.occupancy, node: name, nodes, maxPayloadBytes, logger })
  const cluster = new Cluster({
    node: name,
    nodes,
    takesPart: verifier !== undefined || options.apiKeys.length > 0,
    maxPayloadBytes,
    summary,
    sessions,
    disconnect: (target, code) => ender.disconnect(target, code),
    revoked: () => ender.revoked(cluster.revocations),
    logger,
  })
  const addresses = new ConnectionCounts(options.maxConnectionsPerAddress, 'maxConnectionsPerAddress')
  const users = new ConnectionCounts(options.maxConnectionsPerUser, 'maxConnectionsPerUser')
  const drains = new Drains(transport)
  const replays = new ReplaySender({
    transport,
    drains,
    maxOutboxBytes,
    maxMessageBytes: maxPayloadBytes + MESSAGE_OVERHEAD_BYTES,
  })
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
      groups,
      streams,
      feeds: new StreamFeeds({ streams, transport, logger, urgentKeys }),
      delivery,
      overflowRules: new OverflowRules(options.overflow),
      metaRules,
      presence,
      occupancy,
      turns: dispatcher.turns,
      verifier,
      hooks,
      observer,
      measurements,
      users,
      interest,
      liveBuffers,
      maxLiveBufferBytes: maxOutboxBytes,
      revocations: cluster.revocations,
      deadlines,
      publisher,
      hold: (session, decided, behind) => dispatcher.waitFor(session, decided, behind),
      userListens,
      listensChanged: (connection, by) => userListens.add(sessions.get(connection)?.userId, by),
      limits,
      isLogged,
      logger,
      now: Date.now,
    },
  })
  return {
    addresses,
    author,
    broker,
    cluster,
    deadlines,
    delivery,
    dispatcher,
    ender,
    full,
    gateway,
    groups,
    interest,
    limits,
    listen,
    localListeners,
    measurements,
    nodes,
    occupancy,
    pendingByCaller,
    presence,
    publishRates,
    waitingRoom,
    publisher,
    refusals,
    refused,
    router,
    sessions,
    sharedStreams,
    streams,
    trusted,
    userListens,
    users,
    watch,
  }
}

/** Whether messages of a key are logged. A broker of the embedder does not tell, so none of its keys count. */
function isLoggedBy(broker: Broker, options: ResolvedOptions): (key: string) => boolean {
  if (!broker.capabilities.history || typeof options.broker !== 'string') return () => false
  const rules = historyRulesOf(options, brokerNameOf(options.broker) === 'memory')
  return (key) => rules.ruleOf(key) !== undefined
}
