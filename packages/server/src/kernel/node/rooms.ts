import { loggedKeysFingerprint, sharedOptionsFingerprint } from '../../doors/options/options.js'
import { SSE_FORMAT } from '../../doors/sse/events.js'
import { Nodes } from '../../features/nodes/index.js'
import { FullWatch } from '../../features/observing/health/full-watch.js'
import { Measurements } from '../../features/observing/measuring/measurements.js'
import { Deadlines } from '../base/deadlines.js'
import { logBug } from '../base/log-bug.js'
import { andThen } from '../base/maybe-promise.js'
import { PROCESS } from '../identity/actor.js'
import { Router } from '../patterns/router.js'
import { KeyRules } from '../ports/key-rules.js'
import type { ConnectionId } from '../ports/transport.js'
import { type PendingByClient, requestAuthor, trustedLimits } from '../publishing/author.js'
import { PublishRates } from '../publishing/publish-rates.js'
import { Publisher } from '../publishing/publisher.js'
import { Refusals } from '../publishing/refusals.js'
import { Stamps } from '../publishing/stamps.js'
import { WaitingRoom } from '../publishing/waiting-room.js'
import { Drains } from '../replay/drains.js'
import { Delivery } from '../routing/delivery.js'
import { Interest } from '../routing/interest.js'
import { LiveBuffers } from '../routing/live-buffers.js'
import { type Listen, type LocalHandler, LocalListeners, type LocalListenOptions } from '../routing/local-listeners.js'
import { RefusedMessages } from '../routing/refused-messages.js'
import { UserListens } from '../session/listen-room.js'
import { SessionTable } from '../session/table.js'
import { FEATURES, type OpenFeatures, rowsOf, type Summary } from './features.js'
import type { ServerNodeParts } from './parts.js'
import type { StopList } from './stop-list.js'
import { VERSION } from './version.js'

export type Below = ReturnType<typeof assembleBelow>
type Hearing = ReturnType<typeof assembleHearing>

/** The rooms below the doors. */
export function assembleBelow(parts: ServerNodeParts, stops: StopList, summary: Summary) {
  const hearing = assembleHearing(parts, stops)
  const between = assembleBetween(parts, hearing, stops, summary)
  const { streams, ...writing } = assembleWriting(parts, { ...hearing, ...between })
  const features: OpenFeatures = {
    ...between.features,
    streams,
    ...(parts.outbox && { outbox: FEATURES.outbox.open(parts.outbox) }),
  }
  for (const [name, feature] of rowsOf(features)) stops.add({ name, stop: () => feature.stop?.() })
  return { ...hearing, ...between, ...writing, features }
}

/** Who hears a message, and what is counted of it. */
function assembleHearing({ options, transport, logger, observer, tracer }: ServerNodeParts, stops: StopList) {
  const router = new Router()
  const hasListeners = (key: string) => router.match(key).length > 0
  const measurements = new Measurements({ hasListeners })
  const liveBuffers = new LiveBuffers()
  const localListeners = new LocalListeners(logger, tracer)
  const urgentKeys = new KeyRules(options.urgent)
  const { publishes } = measurements
  const events = SSE_FORMAT
  const delivery = new Delivery({ router, transport, liveBuffers, localListeners, events, publishes, urgentKeys })
  stops.add({ name: 'delivery', stop: () => delivery.stop() })
  const onError = (err: unknown) => logBug(logger, { err }, 'a deadline failed')
  const deadlines = new Deadlines({ now: () => performance.now(), onError })
  stops.add({ name: 'deadlines', stop: () => deadlines.stop() })
  const expiries = new Deadlines({ now: Date.now, onError })
  stops.add({ name: 'expiries', stop: () => expiries.stop() })
  const full = new FullWatch({ stats: () => transport.stats(), logger, observer })
  stops.add({ name: 'full watch', stop: () => full.stop() })
  const sessions = new SessionTable()
  const userListens = new UserListens(sessions)
  const listensChanged = (connection: ConnectionId, by: number) => userListens.add(sessions.get(connection)?.userId, by)
  const refused = new RefusedMessages({ maxPayloadBytes: options.maxPayloadBytes, delivery, logger })
  return {
    router,
    hasListeners,
    measurements,
    liveBuffers,
    localListeners,
    urgentKeys,
    delivery,
    deadlines,
    expiries,
    full,
    refused,
    refusals: new Refusals(observer),
    sessions,
    userListens,
    listensChanged,
    drains: new Drains(transport),
  }
}

/** When a node crashes, its members of queue groups are gone everywhere within this time. */
const MAX_TTL_MS = 10_000

/** The other nodes, and what all nodes know together. */
function assembleBetween(parts: ServerNodeParts, hearing: Hearing, stops: StopList, summary: Summary) {
  const { options, transport, verifier, hooks, logger, name: node, events } = parts
  const { maxPayloadBytes } = options
  const { drains, listensChanged, sessions } = hearing
  const missed = () => {
    hearing.delivery.gap('rules-differ')
    events.emit('gap', { reason: 'rules-differ' })
  }
  const { log } = parts.broker
  const nodes = new Nodes({
    node,
    version: VERSION,
    fingerprint: sharedOptionsFingerprint(options),
    ...(log === undefined ? undefined : { log: { loggedKeys: loggedKeysFingerprint(options), log, missed } }),
    broker: parts.broker,
    maxPayloadBytes,
    ttlMs: Math.min(options.presenceTtlMs, MAX_TTL_MS),
    logger,
  })
  // All that is between nodes stops before it: it says good-bye to the others.
  stops.add({ name: 'nodes', stop: () => nodes.stop() })
  const deliverHook = hooks?.has('deliver') === true ? hooks : undefined
  const hooked = deliverHook?.delivering(parts.broker, hearing.hasListeners) ?? parts.broker
  const features = {
    queueGroups: FEATURES.queueGroups.open({
      node,
      nodes,
      broker: parts.broker,
      transport,
      drains,
      listensChanged,
      limits: options,
      maxPayloadBytes,
      maxPendingBytes: options.brokerMaxPendingBytes,
      waitMs: options.brokerTimeoutMs,
      dedupe: options,
      ...(deliverHook && { delivered: (message) => deliverHook.deliver(message) }),
      logger,
    }),
    presence: FEATURES.presence.open({
      node,
      nodes,
      transport,
      limits: options,
      lingerMs: options.presenceLingerMs,
      maxPayloadBytes,
      logger,
    }),
    ...(parts.occupancy && {
      occupancy: FEATURES.occupancy.open({ ...parts.occupancy, node, nodes, maxPayloadBytes, logger }),
    }),
    cluster: FEATURES.cluster.open({
      node,
      nodes,
      takesPart: verifier !== undefined || options.apiKeys.length > 0,
      maxPayloadBytes,
      summary,
      sessions,
      logger,
    }),
  }
  return { nodes, broker: features.queueGroups.withMembers(hooked), features }
}

/** The one way of a message into the broker, listens of the process, and streams. */
function assembleWriting(parts: ServerNodeParts, below: Hearing & ReturnType<typeof assembleBetween>) {
  const { options, transport, hooks, logger, observer, tracer } = parts
  const { broker, features, localListeners, measurements, nodes, router, urgentKeys } = below
  const { publishes, hooks: hookTimes } = measurements
  hooks?.measure((name, durationMs) => hookTimes[name].observe(durationMs))
  const metaRules = new KeyRules(options.meta)
  const interest = new Interest({
    router,
    broker,
    maxPatternBytes: options.maxPatternBytes,
    onError: (err) => logBug(logger, { err }, 'a pattern could not be unbound'),
  })
  const trusted = trustedLimits(options)
  const pendingByClient: PendingByClient = new Map()
  const author = requestAuthor(PROCESS, trusted, pendingByClient)
  const waitingRoom = new WaitingRoom({
    room: broker.room,
    maxBytes: options.brokerMaxPendingBytes,
    warn: (facts, text) => logger.warn(facts, text),
  })
  const publishRates = new PublishRates()
  const publisher = new Publisher({
    broker,
    responders: features.queueGroups.responders,
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
  const isLogged = (key: string) => broker.logs?.(key) === true
  const isRetained = (key: string) => broker.retains?.(key) === true
  const streams = FEATURES.streams.open({
    broker,
    transport,
    isLogged,
    isRetained,
    urgentKeys,
    publisher,
    author,
    listen: addListener,
    join: features.queueGroups.join,
    // What its writers sent while this node stood still has not been read: it ends none of their streams.
    deadlines: nodes.deadlines,
    hearingMs: () => nodes.hearingMs,
    limits: options,
    logger,
  })
  const given = { author, trusted, pendingByClient, publishRates, waitingRoom }
  return { ...given, metaRules, interest, publisher, listen, isLogged, streams }
}
