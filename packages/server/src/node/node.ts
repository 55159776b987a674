import type { Server as NodeHttpServer } from 'node:http'
import { MESSAGE_OVERHEAD_BYTES, type PresenceMember, WebMQError } from 'webmq-client/protocol'
import type {
  BatchMessage,
  LocalListenOptions,
  PublishOptions,
  PublishResult,
  ServerEvents,
  ServerStats,
} from '../api.js'
import { Cluster, type NodeSummary } from '../cluster/index.js'
import { Deadlines } from '../deadlines.js'
import { Gateway } from '../gateway/gateway.js'
import { BrokerWatch } from '../health/broker-watch.js'
import type { Health } from '../health/readiness.js'
import { DeliveringBroker, type HookCalls } from '../hooks/index.js'
import type { ApiNode } from '../http/api/node.js'
import { type Actor, isTrusted, PROCESS } from '../identity/actor.js'
import type { TokenVerifier } from '../identity/index.js'
import { isFromThisMachine } from '../identity/this-machine.js'
import { NO_TOKEN_FAILURES } from '../identity/token-failures.js'
import type { TrustedProxies } from '../identity/trusted-proxies.js'
import { type LocalHandler, LocalListeners } from '../in-process/listeners.js'
import { type HistoryQuery, type HistoryResult, readHistory } from '../in-process/read-history.js'
import type { Logger } from '../logger.js'
import { Measurements } from '../measuring/measurements.js'
import { Nodes } from '../nodes/index.js'
import { isForThisMachineOnly, type OriginPolicy, originPolicyOf } from '../options/access.js'
import { sharedOptionsFingerprint } from '../options/fingerprint.js'
import type { ResolvedOptions } from '../options/options.js'
import { MetaRules } from '../patterns/meta-rules.js'
import { OverflowRules } from '../patterns/overflow-rules.js'
import { Router } from '../patterns/router.js'
import type { Accepted, Broker, InboundMessage } from '../ports/broker.js'
import { brokerNameOf, secretHider, withoutPasswords } from '../ports/broker-address.js'
import { deferred } from '../ports/deferred.js'
import { historyRulesOf } from '../ports/history-rules.js'
import { andThen, type MaybePromise } from '../ports/maybe-promise.js'
import { formatPosition } from '../ports/position.js'
import { isReserved } from '../ports/reserved-keys.js'
import type { Transport, TransportSink, UpgradeRequest } from '../ports/transport.js'
import { within } from '../ports/within.js'
import { assertKeyWords } from '../ports/word-limits.js'
import { Presence, type PresenceLimits } from '../presence/index.js'
import { type AuthorLimits, PendingByCaller, RequestAuthor, trustedLimits } from '../publishing/author.js'
import type { Observer } from '../publishing/observer.js'
import { PublishRates } from '../publishing/publish-rates.js'
import { Publisher } from '../publishing/publisher.js'
import { Refusals } from '../publishing/refusals.js'
import { Stamps } from '../publishing/stamps.js'
import { GroupedBroker, QueueGroups, type SlotName } from '../queue-groups/index.js'
import { Drains } from '../replay/drains.js'
import { LiveBuffers } from '../replay/live-buffers.js'
import { ReplaySender } from '../replay/sender.js'
import { Delivery } from '../routing/delivery.js'
import { Interest } from '../routing/interest.js'
import { RefusedMessages } from '../routing/refused-messages.js'
import { ConnectionCounts } from '../session/connection-counts.js'
import { Dispatcher } from '../session/dispatcher.js'
import { type ConfiguredLimits, EffectiveLimits } from '../session/effective-limits.js'
import { SessionTable } from '../session/table.js'
import { UserListens } from '../session/user-listens.js'
import type { Tracer } from '../tracing/tracer.js'
import { drain, drainSpreadMs, wait } from './drain.js'
import type { Emitter } from './emitter.js'
import { joinLocally, type LocalGroupsContext, requestLocally } from './local-groups.js'
import { ProcessDraft } from './process-draft.js'
import { RateReader } from './rates.js'
import { SessionEnder } from './session-ender.js'
import { BROKER_GRACE_MS, BROKER_SHARE_MS, NODE_STOP_MS } from './stop-limits.js'
import { VERSION } from './version.js'

/** The parts of a {@link ServerNode}. */
export interface ServerNodeParts {
  readonly options: ResolvedOptions
  readonly transport: Transport
  readonly broker: Broker
  readonly verifier: TokenVerifier | undefined
  readonly proxies: TrustedProxies
  /** Absent without any hook. */
  readonly hooks?: HookCalls | undefined
  readonly logger: Logger
  /** Name of this node that clients see; it reveals nothing about the machine. */
  readonly name: string
  readonly events: Pick<Emitter<ServerEvents>, 'emit'>
  /** Absent when nobody wants to know. */
  readonly observer: Observer | undefined
  /** Absent when nobody traces. */
  readonly tracer?: Tracer | undefined
}

/** When a node crashes, its members of queue groups are gone everywhere within this time. */
const MAX_TTL_MS = 10_000
/** Share of the pending bytes that one connection may use. */
const PENDING_SHARE = 1 / 8

/** Connects a transport with a broker: one node, from its start to its end. */
export class ServerNode {
  readonly #parts: ServerNodeParts
  readonly #router = new Router()
  readonly #sessions = new SessionTable()
  readonly #dispatcher: Dispatcher
  readonly #localListeners: LocalListeners
  readonly #interest: Interest
  readonly #publisher: Publisher
  readonly #refusals: Refusals
  readonly #pendingByCaller = new PendingByCaller()
  /** The process as a publisher. */
  readonly #author: RequestAuthor
  readonly #trusted: AuthorLimits
  readonly #deadlines: Deadlines
  readonly #delivery: Delivery
  readonly #refused: RefusedMessages
  readonly #presence: Presence
  readonly #groups: QueueGroups
  readonly #nodes: Nodes
  readonly #gateway: Gateway
  readonly #measurements: Measurements
  readonly #cluster: Cluster
  readonly #rates: RateReader
  readonly #ender = new SessionEnder(this.#sessions)
  readonly #startedMs = performance.now()
  /** Read on each use, so that a reload changes them. */
  readonly #limits: EffectiveLimits
  readonly #presenceLimits: PresenceLimits
  #origins: OriginPolicy
  readonly #watch: BrokerWatch
  #hideSecrets: (text: string) => string
  readonly #addresses: ConnectionCounts
  readonly #users: ConnectionCounts
  readonly #userListens = new UserListens(this.#sessions)
  readonly #publishRates = new PublishRates()
  #isAttached = false
  /** Set when the node begins to leave; with a delay, clients may come until the drain begins. */
  #isLeaving = false
  #drainEndMs: number | undefined
  readonly #givenUp = deferred<never>()

  constructor(parts: ServerNodeParts) {
    this.#parts = { ...parts, broker: new GroupedBroker(this.#brokerThroughHooks(parts), () => this.#groups) }
    const { options, transport, broker, verifier, hooks, logger, name, events, observer, tracer } = this.#parts
    this.#nodes = new Nodes({
      node: name,
      version: VERSION,
      fingerprint: sharedOptionsFingerprint(options),
      broker: parts.broker,
      maxPayloadBytes: options.maxPayloadBytes,
      ttlMs: Math.min(options.presenceTtlMs, MAX_TTL_MS),
      logger,
    })
    const nodes = this.#nodes
    this.#groups = new QueueGroups({
      node: name,
      nodes,
      broker: parts.broker,
      maxPayloadBytes: options.maxPayloadBytes,
      maxPendingBytes: options.brokerMaxPendingBytes,
      dedupe: { windowMs: options.dedupeWindowMs, maxIds: options.dedupeMaxIds },
      ...(hooks?.hasDeliver === true ? { delivered: (message) => hooks.deliver(message) } : undefined),
      logger,
    })
    this.#givenUp.promise.catch(() => undefined)
    const liveBuffers = new LiveBuffers()
    this.#localListeners = new LocalListeners(logger, tracer)
    const metaRules = new MetaRules(options.meta)
    this.#interest = new Interest({
      router: this.#router,
      broker,
      maxPatternBytes: options.maxPatternBytes,
      onError: (err) => logger.error({ err }, 'a pattern could not be unbound'),
    })
    this.#deadlines = new Deadlines({ onError: (err) => logger.error({ err }, 'a deadline failed') })
    const [router, localListeners] = [this.#router, this.#localListeners]
    this.#measurements = new Measurements({ hasListeners: (key) => router.match(key).length > 0 })
    const { publishes, hooks: hookTimes } = this.#measurements
    this.#refusals = new Refusals(observer)
    this.#trusted = trustedLimits(options)
    this.#author = new RequestAuthor(PROCESS, this.#trusted, this.#pendingByCaller)
    this.#publisher = new Publisher({
      broker,
      groups: this.#groups,
      router: this.#router,
      transport,
      hooks,
      rates: this.#publishRates,
      stamps: new Stamps(metaRules, Date.now),
      timings: publishes,
      tracer,
      observer,
    })
    hooks?.measure((name, durationMs) => hookTimes[name].observe(durationMs))
    this.#delivery = new Delivery({ router, transport, liveBuffers, localListeners, publishes })
    const address = typeof options.broker === 'string' ? options.broker : undefined
    this.#hideSecrets = address === undefined ? (text) => text : secretHider(address)
    this.#watch = new BrokerWatch({
      broker,
      ...(address === undefined || address === broker.name ? {} : { address: withoutPasswords(address) }),
      hideSecrets: (text) => this.#hideSecrets(text),
      logger,
      onChange: (change) => events.emit('broker', change),
    })
    const { maxPayloadBytes, maxOutboxBytes, handshakeTimeoutMs } = options
    this.#limits = new EffectiveLimits(configuredLimitsOf(options))
    this.#presenceLimits = presenceLimitsOf(options)
    this.#origins = originPolicyOf(options)
    const origins = () => this.#origins
    this.#dispatcher = new Dispatcher({
      transport,
      limits: this.#limits.defaults,
      refusals: this.#refusals,
      publishes,
      maxMessageBytes: maxPayloadBytes + MESSAGE_OVERHEAD_BYTES,
      hooks: hooks?.hasMessages === true ? hooks : undefined,
      onError: (err) => logger.error({ err }, 'messages that waited could not be handled'),
    })
    this.#refused = new RefusedMessages({ maxPayloadBytes, delivery: this.#delivery, logger })
    this.#presence = new Presence({
      node: name,
      nodes,
      transport,
      limits: this.#presenceLimits,
      lingerMs: options.presenceLingerMs,
      maxPayloadBytes,
      logger,
    })
    this.#rates = new RateReader(() => ({
      received: this.#receivedCount,
      sent: transport.stats().deliveredCount,
    }))
    this.#cluster = new Cluster({
      nodes,
      takesPart: verifier !== undefined || options.apiKeys.length > 0,
      maxPayloadBytes,
      summary: () => this.#summary(),
      disconnect: (target, code) => this.#ender.disconnect(target, code),
      revoked: () => this.#ender.revoked(this.#cluster.revocations),
      logger,
    })
    this.#addresses = new ConnectionCounts(options.maxConnectionsPerAddress, 'maxConnectionsPerAddress')
    this.#users = new ConnectionCounts(options.maxConnectionsPerUser, 'maxConnectionsPerUser')
    const drains = new Drains(transport)
    const replays = new ReplaySender({
      transport: {
        send: (connection, data, isBinary) => transport.send(connection, data, isBinary),
        notifyDrained: (connection, level) => drains.await(connection, level, () => replays.drained(connection)),
      },
      maxOutboxBytes,
      maxMessageBytes: maxPayloadBytes + MESSAGE_OVERHEAD_BYTES,
    })
    this.#gateway = new Gateway({
      path: options.path,
      get origins() {
        return origins().origins
      },
      get ownHosts() {
        return origins().ownHosts
      },
      ...(options.tokenCookie === undefined ? undefined : { tokenCookie: options.tokenCookie }),
      isOutsider: (request, address) => isForThisMachineOnly(options) && !this.#isFromThisMachine(request, address),
      insecure: options.insecure,
      proxies: parts.proxies,
      addresses: this.#addresses,
      transport,
      sessions: this.#sessions,
      dispatcher: this.#dispatcher,
      refusals: this.#refusals,
      handshakeTimeoutMs,
      node: name,
      version: VERSION,
      heartbeatMs: options.pingIntervalMs,
      dedupe: { dedupeWindowMs: options.dedupeWindowMs, dedupeMaxIds: options.dedupeMaxIds },
      drainRetryAfterMs: () =>
        this.#drainEndMs === undefined ? undefined : Math.max(0, this.#drainEndMs - performance.now()),
      services: {
        transport,
        broker,
        replays,
        drains,
        groups: this.#groups,
        delivery: this.#delivery,
        overflowRules: new OverflowRules(options.slow),
        metaRules,
        presence: this.#presence,
        turns: this.#dispatcher.turns,
        verifier,
        hooks,
        observer,
        measurements: this.#measurements,
        users: this.#users,
        interest: this.#interest,
        liveBuffers,
        maxLiveBufferBytes: maxOutboxBytes,
        revocations: this.#cluster.revocations,
        deadlines: this.#deadlines,
        publisher: this.#publisher,
        hold: (session, decided) => this.#dispatcher.waitFor(session, decided),
        userListens: this.#userListens,
        listensChanged: (connection, by) => this.#userListens.add(this.#sessions.get(connection)?.userId, by),
        limits: this.#limits,
        isLogged: isLoggedBy(broker, options),
        logger,
        now: Date.now,
      },
    })
  }

  /** The options that the node shares with its server have changed, those that may. */
  optionsChanged(): void {
    const { options } = this.#parts
    this.#limits.change(configuredLimitsOf(options))
    Object.assign(this.#presenceLimits, presenceLimitsOf(options))
    this.#origins = originPolicyOf(options)
    this.#addresses.max = options.maxConnectionsPerAddress
    this.#users.max = options.maxConnectionsPerUser
    this.#gateway.limitsChanged()
  }

  /**
   * See {@link Broker.setAddress}.
   * @throws {WebMQError} `E_OPTION_INVALID`; the old address stays.
   */
  setBrokerAddress(address: string): void {
    this.#parts.broker.setAddress?.(address)
    const [hideOld, hideNew] = [this.#hideSecrets, secretHider(address)]
    this.#hideSecrets = (text) => hideNew(hideOld(text))
  }

  #brokerThroughHooks({ broker, hooks }: ServerNodeParts): Broker {
    if (hooks?.hasDeliver !== true) return broker
    return new DeliveringBroker(broker, { hooks, hasListeners: (key) => this.#router.match(key).length > 0 })
  }

  /** Takes upgrades of a server of the embedder too, whose address is unknown and which may be behind a proxy. */
  attach(server: NodeHttpServer): () => void {
    const { transport, options } = this.#parts
    this.#isAttached = true
    return transport.attach(server, this.sink, options.path)
  }

  /** Takes the events of the transport. */
  get sink(): TransportSink {
    return this.#gateway
  }

  /** On the node's own port, a proxy on this machine may add headers. */
  #isFromThisMachine(request: UpgradeRequest, clientAddress: string): boolean {
    const { remoteAddress } = request
    const header = (name: string) => request.header(name)
    return isFromThisMachine({ remoteAddress, header, clientAddress, mayBeProxied: !this.#isAttached })
  }

  /** Aborts a start that waits for the broker. */
  giveUp(): void {
    this.#givenUp.reject(new WebMQError('E_NOT_RUNNING', { detail: 'stopped before the broker was reached' }))
  }

  /**
   * Starts the broker. Once this resolves, connections may come.
   * @throws {WebMQError} The errors of {@link Broker.start}, without secrets; broker and transport are then stopped.
   *   `E_NOT_RUNNING` after `giveUp`.
   */
  async start(): Promise<void> {
    const { broker, events } = this.#parts
    const deliver = (message: InboundMessage) =>
      // Messages between servers never reach a listener, whatever its pattern.
      isReserved(message.key) ? this.#nodes.receive(message) : this.#delivery.deliver(message)
    const started = broker.start({
      deliver: (message) => this.#refused.deliver(message, deliver),
      gap: (reason, isAffected) => {
        this.#delivery.gap(reason, isAffected)
        this.#nodes.gap()
        events.emit('gap', { reason })
      },
      refused: (message) => this.#refused.add(message),
      status: (status, cause) => {
        this.#watch.change(status, cause)
        this.#nodes.status(status)
      },
    })
    try {
      await Promise.race([this.#givenUp.promise, started])
    } catch (error) {
      this.#watch.stop()
      await this.#stopBroker(NODE_STOP_MS)
      await this.#parts.transport.stop()
      throw this.#withoutSecrets(error)
    }
    await Promise.race([this.#givenUp.promise, this.#nodes.begin()])
  }

  /** Returns the error itself, or a copy without the secrets that it contains. */
  #withoutSecrets(error: unknown): unknown {
    if (!(error instanceof Error)) return error
    const shown = this.#hideSecrets(error.message)
    const { code } = error instanceof WebMQError ? error : new WebMQError('E_BROKER_UNAVAILABLE')
    return shown === error.message && error instanceof WebMQError ? error : new WebMQError(code, { message: shown })
  }

  /** See {@link WebMQServer.publish}. */
  publish(
    key: string,
    payload: unknown,
    { id, traceparent = this.#parts.tracer?.active, ephemeral }: PublishOptions,
  ): MaybePromise<PublishResult> {
    const draft = new ProcessDraft().fill({ key, payload, id, traceparent, ephemeral })
    return andThen(this.#publisher.publish(this.#author, draft, draft.isBinary), resultOf)
  }

  /** See {@link WebMQServer.publishBatch}. */
  publishBatch(batch: readonly BatchMessage[]): MaybePromise<readonly PublishResult[]> {
    const draft = new ProcessDraft()
    const accepted = this.#publisher.publishAll(this.#author, batch.length, (index) =>
      draft.fill(batch[index] as BatchMessage),
    )
    return andThen(accepted, (accepted) => accepted.map(resultOf))
  }

  /** See {@link WebMQServer.history}. */
  history(key: string, query: HistoryQuery): MaybePromise<HistoryResult> {
    return readHistory(this.#parts.broker, key, query, this.#parts.options)
  }

  /** What the HTTP API does with this node. */
  get api(): ApiNode {
    const [router, sessions] = [this.#router, this.#sessions]
    return {
      name: this.#parts.name,
      cluster: this.#cluster,
      publisher: this.#publisher,
      authorOf: (actor) => new RequestAuthor(actor, this.#limitsOf(actor), this.#pendingByCaller),
      refused: (actor, action, code, target) => this.#refusals.add(actor, action, code, target),
      operated: (actor, action, target) => this.#parts.observer?.operated?.(actor, action, target),
      read: (range, key) =>
        andThen(this.#parts.broker.read(range, [key]), ({ position, ...read }) => ({
          ...read,
          position: formatPosition(position),
        })),
      presence: (key) => this.presence(key),
      sessions: () => sessions,
      patterns: () => router.routes(),
    }
  }

  #limitsOf(actor: Actor): AuthorLimits {
    return isTrusted(actor) || actor.identity === undefined ? this.#trusted : this.#limits.of(actor.identity)
  }

  /** Adds an in-process handler. Resolves, once it is live, to a function that removes it. */
  async listen(pattern: string, handler: LocalHandler, { onGap }: LocalListenOptions): Promise<() => void> {
    return await andThen(this.#interest.retain(pattern), ({ group }) => {
      const listener = { pattern, group, handler, onGap }
      this.#localListeners.add(listener)
      return () => {
        this.#localListeners.remove(listener)
        this.#interest.release(pattern)
      }
    })
  }

  /** Makes an in-process handler a member of a queue group. Resolves, once all nodes know it, to a function that ends it. */
  async join(name: SlotName, handler: LocalHandler): Promise<() => void> {
    return await joinLocally(this.#localGroups, name, handler)
  }

  /** See {@link WebMQServer.request}. */
  request(key: string, payload: unknown, timeoutMs: number | undefined): Promise<unknown> {
    return requestLocally({ publisher: this.#publisher, author: this.#author }, key, payload, timeoutMs)
  }

  get #localGroups(): LocalGroupsContext {
    const { logger, options } = this.#parts
    return { groups: this.#groups, maxPayloadBytes: options.maxPayloadBytes, logger }
  }

  /** See {@link WebMQServer.presence}. */
  presence(key: string): MaybePromise<readonly PresenceMember[]> {
    assertKeyWords(key, this.#parts.options)
    const read = () => JSON.parse(this.#presence.membersJson(key)) as PresenceMember[]
    return andThen(this.#presence.whenComplete(), read)
  }

  health(): Health {
    const { name } = this.#parts
    return {
      status: this.#isLeaving ? 'draining' : 'ok',
      node: name,
      version: VERSION,
      uptimeMs: Math.round(performance.now() - this.#startedMs),
      connections: this.#sessions.size,
      broker: this.#watch.report(),
    }
  }

  #summary(): NodeSummary {
    const { node, status, version, uptimeMs, connections, broker } = this.health()
    return {
      node,
      version,
      status,
      uptimeMs,
      connections,
      patterns: this.#router.patternCount,
      ...this.#rates.rates(),
      broker: broker.name,
      brokerStatus: broker.status,
    }
  }

  /** Of the session layer, and of the transport, which may answer some itself. */
  get #receivedCount(): number {
    return this.#dispatcher.receivedCount + this.#parts.transport.stats().answeredMessageCount
  }

  stats(): Omit<ServerStats, 'http' | 'hooks'> {
    const { broker, transport } = this.#parts
    const { status, awayMs, lastAwayMs } = this.#watch
    return {
      connectionCount: this.#sessions.size,
      userCount: this.#users.size,
      listenCount: [...this.#sessions].reduce((count, session) => count + session.listenCount, 0),
      patternCount: this.#router.patternCount,
      patternBytes: this.#router.byteCount,
      receivedCount: this.#receivedCount,
      routedCount: this.#delivery.routedCount,
      localDroppedCount: this.#localListeners.droppedCount,
      refusedCounts: this.#refusals.counts,
      ...this.#measurements.stats(),
      tokenFailureCounts: {
        ...(this.#parts.verifier?.failureCounts ?? NO_TOKEN_FAILURES),
        missing: this.#measurements.missingTokenCount,
      },
      gapCounts: this.#delivery.gapCounts,
      connectionLimitCounts: { address: this.#addresses.refusedCount, user: this.#users.refusedCount },
      publishRateCounts: this.#publishRates.refusedCounts,
      malformedForwardedCount: this.#parts.proxies.malformedCount,
      refusedMessageCounts: this.#refused.counts,
      presence: this.#presence.stats(),
      cluster: this.#cluster.stats(),
      queueGroups: this.#groups.stats(),
      work: this.#dispatcher.turns.stats(),
      broker: { ...broker.stats(), status, awayMs, lastAwayMs },
      transport: transport.stats(),
    }
  }

  /** Drains and stops the node; see {@link WebMQServer.stop}. */
  async stop(drainMs: number, delayMs: number): Promise<void> {
    const { transport, broker, logger } = this.#parts
    this.#isLeaving = true
    if (delayMs > 0) {
      logger.info({ delayMs }, 'leaving: not ready any more, and still accepting connections')
      await wait(delayMs)
    }
    const sessions = this.#sessions
    const spreadMs = drainSpreadMs(sessions.size, drainMs, this.#parts.options.drainPerSecond)
    const startMs = performance.now()
    const endMs = startMs + spreadMs + NODE_STOP_MS
    const leftMs = (reservedMs: number) => Math.max(0, endMs - reservedMs - performance.now())
    this.#drainEndMs = startMs + spreadMs
    // The port stays open: probes get answers, and upgrades a 503 with a reason.
    await drain({ sessions, logger }, spreadMs, leftMs(BROKER_SHARE_MS))
    await transport.stopAccepting()
    const connections = sessions.size
    await transport.stop(leftMs(BROKER_SHARE_MS))
    // Before this node takes leave of the others: its farewells are nobody's publishes.
    const pendingCount = broker.stats().pendingCount - this.#nodes.channel.pendingCount
    this.#presence.stop()
    this.#groups.stop()
    this.#nodes.stop()
    this.#ender.stop()
    this.#dispatcher.turns.stop()
    this.#deadlines.stop()
    this.#delivery.stop()
    const { rejectedCount } = broker.stats()
    this.#watch.stop()
    const hasBrokerAnswered = await this.#stopBroker(leftMs(BROKER_GRACE_MS))
    const publishes = Math.min(pendingCount, broker.stats().rejectedCount - rejectedCount)
    if (connections === 0 && publishes === 0 && hasBrokerAnswered) return
    logger.warn(
      { connections, publishes, ...(hasBrokerAnswered ? {} : { broker: broker.name }) },
      'stopped without the answers of these connections, publishes and broker',
    )
  }

  /** Returns whether the broker has ended in order. */
  async #stopBroker(limitMs: number): Promise<boolean> {
    const { broker, logger } = this.#parts
    const startedMs = performance.now()
    const stopped = broker.stop(limitMs).catch((err: unknown) => {
      logger.error({ err }, 'the broker could not be stopped')
    })
    const isStopped = await within(stopped, limitMs + BROKER_GRACE_MS)
    return isStopped && performance.now() - startedMs < Math.max(1, limitMs)
  }
}

function configuredLimitsOf(options: ResolvedOptions): ConfiguredLimits {
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
    authTimeoutMs: options.authTimeoutMs,
    workPerSecond: options.workPerSecond,
    workBurst: options.workBurst,
  }
}

function presenceLimitsOf(options: ResolvedOptions): PresenceLimits {
  return {
    maxDataBytes: options.presenceMaxDataBytes,
    maxMembersPerKey: options.presenceMaxMembersPerKey,
    // One answer leaves room for live messages, as a replay does.
    maxKeyBytes: options.maxOutboxBytes / 2,
    maxKeysPerConnection: options.presenceMaxKeysPerConnection,
    maxMembers: options.presenceMaxMembers,
    maxBytes: options.presenceMaxBytes,
    maxMembersPerUser: options.presenceMaxMembersPerUser,
  }
}

/** Whether messages of a key are logged. A broker of the embedder does not tell, so none of its keys count. */
function isLoggedBy(broker: Broker, options: ResolvedOptions): (key: string) => boolean {
  if (!broker.capabilities.history || typeof options.broker !== 'string') return () => false
  const rules = historyRulesOf(options, brokerNameOf(options.broker) === 'memory')
  return (key) => rules.ruleOf(key) !== undefined
}

function resultOf({ position, isDuplicate }: Accepted): PublishResult {
  return position === undefined
    ? { duplicate: isDuplicate }
    : { duplicate: isDuplicate, position: formatPosition(position) }
}
