import { randomBytes } from 'node:crypto'
import type { IncomingMessage, Server as NodeHttpServer, ServerResponse } from 'node:http'
import { fileURLToPath } from 'node:url'
import { type PresenceMember, validateKey, WebMQError } from 'webmq-client/protocol'
import type {
  BatchMessage,
  LocalListenOptions,
  LocalSubscription,
  PublishOptions,
  PublishResult,
  ReloadResult,
  RequestOptions,
  RespondOptions,
  ServerAddress,
  ServerEvents,
  ServerStats,
  WebMQServer,
} from '../api.js'
import type { AuditLog } from '../audit/log.js'
import { CertificateStore } from '../certificates/store.js'
import type { Health } from '../health/readiness.js'
import { type HookCalls, NO_HOOK_COUNTS, type Webhook } from '../hooks/index.js'
import { AdminPage } from '../http/admin/page.js'
import { AdminServer } from '../http/admin-server.js'
import { HttpApi } from '../http/api/api.js'
import { Callers } from '../http/caller.js'
import { HttpFrontend } from '../http/frontend.js'
import type { MetricsSource } from '../http/metric-spec.js'
import { Metrics } from '../http/metrics.js'
import type { TokenVerifier } from '../identity/index.js'
import { isOriginAllowed } from '../identity/origin.js'
import { TrustedProxies } from '../identity/trusted-proxies.js'
import type { LocalHandler } from '../in-process/listeners.js'
import type { HistoryQuery, HistoryResult } from '../in-process/read-history.js'
import { type Logger, setLogLevel } from '../logger.js'
import { isForThisMachineOnly, originPolicyOf } from '../options/access.js'
import { type ResolvedOptions, type ServerOptions, tlsFilesOf } from '../options/options.js'
import { planReload } from '../options/reload.js'
import { withoutSecrets } from '../options/without-secrets.js'
import type { Broker } from '../ports/broker.js'
import { brokerNameOf } from '../ports/broker-address.js'
import { deferred } from '../ports/deferred.js'
import type { TlsCertificate, Transport, TransportAddress } from '../ports/transport.js'
import { describeTransport, type TransportChoice } from '../ports/transport-choice.js'
import { incidentLog } from '../session/incident-log.js'
import { combineObservers, type SessionObserver } from '../session/observer.js'
import { loadTracer } from '../tracing/tracer.js'
import { Emitter } from './emitter.js'
import { assertGroup, assertLocalKey, assertLocalPattern, respondersOf } from './local-groups.js'
import { ServerNode } from './node.js'
import { VERSION } from './version.js'

/** A transport, and why it was chosen. */
export interface ChosenTransport {
  readonly transport: Transport
  readonly choice: TransportChoice
}

/** Asks for a transport. */
export interface TransportRequest {
  /** Gets the requests that are no upgrades. */
  readonly httpServer: NodeHttpServer
  /** Present: the transport serves TLS. */
  readonly certificates: readonly TlsCertificate[] | undefined
  /** The server whose upgrades it takes first; absent when it listens first. */
  readonly attachTo: NodeHttpServer | undefined
}

/** The parts of a {@link Server}. Transport and broker are created when they are needed. */
export interface ServerParts {
  readonly options: ResolvedOptions
  readonly logger: Logger
  readonly verifier: TokenVerifier | undefined
  /** Prepares other keys for `verifier`, see {@link ReloadableVerifier.prepare}. Absent without tokens. */
  readonly prepareKeys?: ((options: ResolvedOptions) => () => void) | undefined
  /** Absent without any hook. */
  readonly hooks?: HookCalls | undefined
  readonly webhook?: Webhook | undefined
  /** Are told what sessions do. */
  readonly observers?: readonly SessionObserver[]
  readonly audit?: AuditLog | undefined
  readonly demo: { readonly pageFolder: string; readonly clientFolder: string } | undefined
  createTransport(options: ResolvedOptions, request: TransportRequest): Promise<ChosenTransport>
  createBroker(options: ResolvedOptions): Promise<Broker>
}

/** What runs once transport and broker exist. */
interface Running {
  readonly node: ServerNode
  readonly transport: Transport
}

const NODE_NAME_BYTES = 6
/** For notices of the connections that the stop has closed. */
const WEBHOOK_STOP_MS = 400

/** The lifecycle of a node: created, started or attached, then stopped for good. */
export class Server implements WebMQServer {
  readonly #parts: ServerParts
  /** Shared with the node. A reload writes into it; what is read once is not reloadable. */
  readonly #options: { -readonly [Name in keyof ResolvedOptions]: ResolvedOptions[Name] }
  readonly #http: HttpFrontend
  readonly #admin: AdminServer | undefined
  /** Present with TLS. */
  readonly #certificates: CertificateStore | undefined
  readonly #proxies: TrustedProxies
  readonly #name = randomBytes(NODE_NAME_BYTES).toString('hex')
  readonly #becameRunning = deferred<ServerNode>()
  readonly #detaches = new Set<() => void>()
  readonly #events: Emitter<ServerEvents>
  /** The node while it waits for its broker, and later; `#node` is set only once it runs. */
  #candidate: ServerNode | undefined
  #running: Promise<Running> | undefined
  #transport: TransportChoice | undefined
  #servesStreams = false
  #node: ServerNode | undefined
  #address: ServerAddress | undefined
  #adminAddress: TransportAddress | undefined
  #starting: Promise<ServerAddress> | undefined
  #stopping: Promise<void> | undefined

  constructor(parts: ServerParts) {
    this.#options = { ...parts.options }
    this.#parts = { ...parts, options: this.#options }
    // It rejects when the server stops, also when nobody waits for it.
    this.#becameRunning.promise.catch(() => undefined)
    const { options, logger, demo } = parts
    this.#events = new Emitter((err, event) => logger.error({ err, event }, 'a handler of an event failed'))
    this.#certificates =
      options.tls === undefined ? undefined : new CertificateStore({ files: tlsFilesOf(options.tls), logger })
    this.#proxies = new TrustedProxies(options.trustedProxies)
    const metrics = new Metrics(() => this.#metricsSource())
    const { adminPort, adminHost } = options
    const audience = () => this.#options.metrics
    const isAllowed = (origin: string | undefined, host: string | undefined) => {
      const { origins, ownHosts } = originPolicyOf(this.#options)
      return isOriginAllowed(origin, host, origins, ownHosts)
    }
    const callers = new Callers({
      apiKeys: () => this.#options.apiKeys,
      verifier: parts.verifier,
      revocations: () => this.#node?.api.cluster.revocations,
      isOriginAllowed: isAllowed,
      isForThisMachineOnly: isForThisMachineOnly(options),
      proxies: this.#proxies,
    })
    const routes = new HttpApi({
      callers,
      node: () => this.#node?.api,
      hooks: parts.hooks,
      insecure: options.insecure,
      limits: this.#options,
      work: this.#options,
      config: () => withoutSecrets(this.#options),
      bodyTimeoutMs: options.messageTimeoutMs,
      logger,
    })
    const probes = {
      path: options.path,
      health: () => this.#health(),
      isOriginAllowed: isAllowed,
      metrics: () => metrics.page(),
      logger,
    }
    this.#admin =
      adminPort === undefined
        ? undefined
        : new AdminServer({
            ...probes,
            api: { routes, scope: 'all' },
            ...(options.apiKeys.length === 0 ? undefined : { admin: this.#adminPage(callers) }),
            host: adminHost,
            port: adminPort,
            get metricsAudience() {
              return audience()
            },
          })
    this.#http = new HttpFrontend({
      ...probes,
      get metricsAudience() {
        return adminPort === undefined ? audience() : 'off'
      },
      hasEndpoint: true,
      ...(options.sse === 'on' ? { ssePath: options.ssePath } : undefined),
      servesStreams: () => this.#servesStreams,
      allowsCredentials: options.tokenCookie !== undefined,
      api: { routes, scope: this.#admin === undefined ? 'all' : 'clients' },
      ...(demo === undefined ? undefined : { demo }),
    })
  }

  #adminPage(callers: Callers): AdminPage {
    const folder = fileURLToPath(new URL('../../admin', import.meta.url))
    return new AdminPage({
      folder,
      callers,
      listen: (pattern, handler, options) => this.listen(pattern, handler, options),
    })
  }

  /** The present options. */
  get options(): ResolvedOptions {
    return this.#options
  }

  get address(): ServerAddress | undefined {
    return this.#address
  }

  get adminAddress(): TransportAddress | undefined {
    return this.#adminAddress
  }

  start(): Promise<ServerAddress> {
    if (this.#stopping !== undefined) return Promise.reject(notRunning())
    this.#starting ??= this.#start()
    return this.#starting
  }

  async attach(httpServer: NodeHttpServer): Promise<() => void> {
    const { node } = await this.#run(httpServer)
    const end = node.attach(httpServer)
    const detach = () => {
      if (this.#detaches.delete(detach)) end()
    }
    this.#detaches.add(detach)
    return detach
  }

  handleRequest(request: IncomingMessage, response: ServerResponse): void {
    this.#http.handle(request, response)
  }

  reload(input: ServerOptions): ReloadResult {
    const { logger, prepareKeys } = this.#parts
    const { options, changed, needRestart } = planReload(this.#options, input)
    // Keys and addresses that cannot be used are refused before anything has changed.
    const useKeys = prepareKeys?.(options)
    const node = this.#node ?? this.#candidate
    if (changed.includes('broker')) node?.setBrokerAddress(String(options.broker))
    Object.assign(this.#options, options)
    useKeys?.()
    if (changed.includes('webhook.secret')) this.#parts.webhook?.setSecret(options.webhook?.secret)
    setLogLevel(logger, options.logLevel)
    node?.optionsChanged()
    this.#certificates?.check()
    for (const option of changed) logger.info({ option }, 'the option has changed')
    for (const option of needRestart) logger.warn({ option }, 'the option changes with the next start')
    return { changed, needRestart }
  }

  stop({ drainMs, delayMs }: { readonly drainMs?: number; readonly delayMs?: number } = {}): Promise<void> {
    const { drainTimeoutMs, drainDelayMs } = this.#parts.options
    this.#stopping ??= this.#stop(drainMs ?? drainTimeoutMs, delayMs ?? drainDelayMs)
    return this.#stopping
  }

  async publish(key: string, payload: unknown, options: PublishOptions = {}): Promise<PublishResult> {
    return this.#assertRunning().publish(key, payload, options)
  }

  async publishBatch(messages: readonly BatchMessage[]): Promise<readonly PublishResult[]> {
    return this.#assertRunning().publishBatch(messages)
  }

  async history(key: string, query: HistoryQuery = {}): Promise<HistoryResult> {
    return this.#assertRunning().history(key, query)
  }

  on<E extends keyof ServerEvents>(event: E, handler: (event: ServerEvents[E]) => unknown): () => void {
    return this.#events.on(event, handler)
  }

  listen(pattern: string, handler: LocalHandler, options: LocalListenOptions = {}): LocalSubscription {
    assertLocalPattern(pattern)
    const { group } = options
    if (group === undefined) return this.#subscribe(pattern, (node) => node.listen(pattern, handler, options))
    assertGroup(group)
    return this.#subscribe(pattern, (node) => node.join({ kind: 'listen', group, pattern }, handler))
  }

  respond(pattern: string, handler: LocalHandler, options: RespondOptions = {}): LocalSubscription {
    assertLocalPattern(pattern)
    const name = respondersOf(pattern, options)
    assertGroup(name.group)
    return this.#subscribe(pattern, (node) => node.join(name, handler))
  }

  async request(key: string, payload: unknown, { timeoutMs }: RequestOptions = {}): Promise<unknown> {
    assertLocalKey(key)
    return this.#assertRunning().request(key, payload, timeoutMs)
  }

  #subscribe(pattern: string, begin: (node: ServerNode) => Promise<() => void>): LocalSubscription {
    if (this.#stopping !== undefined) throw notRunning()
    let isWanted = true
    let release: (() => void) | undefined
    const ready = this.#becameRunning.promise.then(async (node) => {
      if (!isWanted) return
      const end = await begin(node)
      if (isWanted) release = end
      else end()
    })
    // Callers may ignore `ready`; a rejection that nobody handles must not crash the process.
    ready.catch(() => undefined)
    const unlisten = () => {
      isWanted = false
      release?.()
      release = undefined
    }
    return { pattern, ready, unlisten, [Symbol.dispose]: unlisten }
  }

  async presence(key: string): Promise<readonly PresenceMember[]> {
    validateKey(key)
    return this.#assertRunning().presence(key)
  }

  reopenAuditLog(): void {
    this.#parts.audit?.reopen()
  }

  stats(): ServerStats {
    const node = this.#assertRunning()
    const tls = this.#certificates?.stats()
    const { audit, hooks, webhook } = this.#parts
    return {
      ...node.stats(),
      http: this.#http.stats(),
      hooks: hooks?.counts ?? NO_HOOK_COUNTS,
      ...(webhook && { webhook: webhook.stats }),
      ...(audit && { audit: audit.stats() }),
      ...(tls === undefined ? undefined : { tls }),
    }
  }

  async #start(): Promise<ServerAddress> {
    const { options, logger } = this.#parts
    const { node, transport } = await this.#run()
    try {
      const { host, port } = await transport.start(node.sink)
      this.#certificates?.watch(transport)
      this.#address = { host, port, url: endpointUrl(host, port, options) }
    } catch (error) {
      this.#stopping ??= this.#end(0, 0)
      await this.#stopping
      throw error
    }
    logger.info({ ...this.#address, node: this.#name, version: VERSION }, 'listening')
    return this.#address
  }

  /** Starts everything but the port, once. */
  #run(attachTo?: NodeHttpServer): Promise<Running> {
    if (this.#stopping !== undefined) return Promise.reject(notRunning())
    this.#running ??= this.#bringUp(attachTo)
    return this.#running
  }

  async #bringUp(attachTo: NodeHttpServer | undefined): Promise<Running> {
    const { options, logger, verifier, hooks, webhook, observers = [], audit, createBroker } = this.#parts
    let transport: Transport | undefined
    try {
      // First, because its library may be missing. It connects when the node starts.
      const broker = await createBroker(options)
      await this.#certificates?.load()
      audit?.open()
      transport = await this.#createTransport(attachTo)
      // Before the node, so that probes get `starting` while the server waits for its broker.
      if (this.#admin !== undefined) {
        this.#adminAddress = await this.#admin.listen()
        logger.info({ ...this.#adminAddress }, 'the admin port listens')
      }
      const events = this.#events
      const observer = combineObservers([
        incidentLog({ logger, now: Date.now }),
        ...observers,
        ...(webhook === undefined ? [] : [webhook.observer]),
        ...(audit === undefined ? [] : [audit.observer()]),
      ])
      const node = new ServerNode({
        options,
        transport,
        broker,
        verifier,
        proxies: this.#proxies,
        hooks,
        logger,
        name: this.#name,
        events,
        observer,
        tracer: await loadTracer(VERSION),
      })
      this.#candidate = node
      // `stop` was called while the broker was being created.
      if (this.#stopping !== undefined) node.giveUp()
      await node.start()
      this.#node = node
      this.#becameRunning.resolve(node)
      return { node, transport }
    } catch (error) {
      await transport?.stop()
      this.#stopping ??= this.#end(0, 0)
      throw error
    }
  }

  async #createTransport(attachTo: NodeHttpServer | undefined): Promise<Transport> {
    const { options, logger, createTransport } = this.#parts
    const certificates = this.#certificates?.certificates
    const { transport, choice } = await createTransport(options, {
      httpServer: this.#http.server,
      certificates,
      attachTo,
    })
    if (certificates !== undefined && !transport.capabilities.tls) {
      throw new WebMQError('E_OPTION_INVALID', { detail: `tls: the ${transport.name} transport has no TLS` })
    }
    if (options.proxyProtocol && !transport.capabilities.proxyProtocol) {
      throw new WebMQError('E_OPTION_INVALID', {
        detail: `proxyProtocol: the ${transport.name} transport does not speak it`,
      })
    }
    if (options.proxyProtocol && attachTo !== undefined) {
      throw new WebMQError('E_OPTION_INVALID', {
        detail: "proxyProtocol: it is for the server's own port, not for a server that it is attached to",
      })
    }
    this.#transport = choice
    this.#servesStreams = transport.capabilities.sse
    logger.info({ transport: choice }, describeTransport(choice))
    return transport
  }

  async #stop(drainMs: number, delayMs: number): Promise<void> {
    // A start in progress ends first; its own caller gets its error.
    if (this.#node === undefined) this.#candidate?.giveUp()
    await Promise.allSettled([this.#running, this.#starting])
    await this.#end(drainMs, delayMs)
  }

  async #end(drainMs: number, delayMs: number): Promise<void> {
    this.#becameRunning.reject(notRunning())
    this.#events.close()
    this.#certificates?.stop()
    await this.#node?.stop(drainMs, delayMs)
    await Promise.all([this.#parts.audit?.close(), this.#parts.webhook?.close(WEBHOOK_STOP_MS)])
    this.#parts.verifier?.close()
    for (const detach of this.#detaches) detach()
    this.#http.close()
    this.#admin?.close()
    this.#address = undefined
    this.#adminAddress = undefined
    this.#node = undefined
    this.#parts.logger.info({ node: this.#name }, 'stopped')
  }

  #assertRunning(): ServerNode {
    if (this.#node === undefined) throw notRunning()
    return this.#node
  }

  #metricsSource(): MetricsSource | undefined {
    const node = this.#node
    if (node === undefined) return undefined
    return { node: this.#name, version: VERSION, broker: node.health().broker.name, stats: this.stats() }
  }

  #health(): Health {
    const health = this.#node?.health() ?? this.#healthWithoutNode()
    return this.#transport === undefined ? health : { ...health, transport: this.#transport }
  }

  #healthWithoutNode(): Health {
    const status = this.#stopping === undefined ? 'starting' : 'stopped'
    const waiting = status === 'starting' ? this.#candidate?.health().broker : undefined
    const broker = waiting ?? { name: brokerNameIn(this.#parts.options), status: 'down', sinceMs: 0 }
    return { status, node: this.#name, version: VERSION, uptimeMs: 0, connections: 0, broker }
  }
}

/** The broker's name before the broker exists. */
function brokerNameIn({ broker }: ResolvedOptions): string {
  return typeof broker === 'string' ? (brokerNameOf(broker) ?? 'unknown') : broker.name
}

function notRunning(): WebMQError {
  return new WebMQError('E_NOT_RUNNING')
}

/** A server on all addresses is reached from this machine as `localhost`. */
function endpointUrl(host: string, port: number, { tls, path }: ResolvedOptions): string {
  const isAny = host === '0.0.0.0' || host === '::'
  const name = isAny ? 'localhost' : host.includes(':') ? `[${host}]` : host
  return `${tls === undefined ? 'ws' : 'wss'}://${name}:${port}${path}`
}
