import { randomBytes } from 'node:crypto'
import type { IncomingMessage, Server as NodeHttpServer, ServerResponse } from 'node:http'
import { isGroup, type PresenceMember, validateKey, validatePattern, WebMQError } from 'webmq-client/protocol'
import { createHttp, type ServerHttp } from '../../doors/http/create-http.js'
import { planReload } from '../../doors/options/reload.js'
import { type ResolvedOptions, type ServerOptions, tlsFilesOf } from '../../doors/options/server-options.js'
import { linesOf, setLogLevel } from '../base/logger.js'
import { CertificateStore } from '../identity/certificates/store.js'
import { NO_HOOK_COUNTS } from '../identity/hook-port.js'
import { TrustedProxies } from '../identity/trusted-proxies.js'
import { isReserved } from '../ports/reserved-keys.js'
import type { TransportAddress } from '../ports/transport.js'
import type { BatchMessage, PublishOptions, PublishResult } from '../publishing/publish-options.js'
import type { LocalHandler } from '../routing/in-process/listeners.js'
import type { HistoryQuery, HistoryResult } from '../routing/in-process/read-history.js'
import type { LocalListenOptions, LocalSubscription } from '../routing/in-process/subscription.js'
import { Emitter } from './emitter.js'
import { Lifecycle, notRunning } from './lifecycle.js'
import { metricsPage } from './metrics/page.js'
import type { MetricsSource } from './metrics/table.js'
import type { ServerNode } from './node.js'
import type { ServerParts } from './parts.js'
import type { ServerStats } from './stats.js'
import { VERSION } from './version.js'
import type {
  ReloadResult,
  RequestOptions,
  RespondOptions,
  ServerAddress,
  ServerEvents,
  StreamContent,
  StreamOptions,
  StreamWriter,
  WebMQServer,
} from './webmq-server.js'

const NODE_NAME_BYTES = 6
/** The group of responders that give no name: those of one pattern share its requests. */
const DEFAULT_RESPONDERS = 'responders'

/** A server in this process: its API. {@link Lifecycle} starts and stops what does the work. */
export class Server implements WebMQServer {
  readonly #parts: ServerParts
  /** Shared with the node. A reload writes into it; what is read once is not reloadable. */
  readonly #options: { -readonly [Name in keyof ResolvedOptions]: ResolvedOptions[Name] }
  readonly #name = randomBytes(NODE_NAME_BYTES).toString('hex')
  readonly #events: Emitter<ServerEvents>
  readonly #certificates: CertificateStore | undefined
  readonly #http: ServerHttp
  readonly #lifecycle: Lifecycle

  constructor(parts: ServerParts) {
    this.#options = { ...parts.options }
    this.#parts = { ...parts, options: this.#options }
    const { logger, verifier, hooks, demo } = parts
    const { tls, trustedProxies } = this.#options
    this.#events = new Emitter((err, event) => logger.error({ err, event }, 'a handler of an event failed'))
    this.#certificates = tls === undefined ? undefined : new CertificateStore(tlsFilesOf(tls), logger)
    const proxies = new TrustedProxies(trustedProxies)
    this.#http = createHttp({
      options: this.#options,
      logger,
      verifier,
      hooks,
      proxies,
      demo,
      node: () => this.#lifecycle.node?.api.http,
      health: () => this.#lifecycle.health(),
      metrics: () => metricsPage(() => this.#metricsSource()),
      takeStream: (request, response) => this.#lifecycle.takeStream(request, response),
      listen: (pattern, handler, options) => this.listen(pattern, handler, options),
    })
    this.#lifecycle = new Lifecycle({
      name: this.#name,
      parts: this.#parts,
      events: this.#events,
      http: this.#http,
      certificates: this.#certificates,
      proxies,
    })
  }

  get options(): ResolvedOptions {
    return this.#options
  }

  get address(): ServerAddress | undefined {
    return this.#lifecycle.address
  }

  get adminAddress(): TransportAddress | undefined {
    return this.#lifecycle.adminAddress
  }

  start(): Promise<ServerAddress> {
    return this.#lifecycle.start()
  }

  attach(httpServer: NodeHttpServer): Promise<() => void> {
    return this.#lifecycle.attach(httpServer)
  }

  handleRequest(request: IncomingMessage, response: ServerResponse): void {
    this.#http.frontend.handle(request, response)
  }

  reload(input: ServerOptions): ReloadResult {
    const { logger, prepareKeys } = this.#parts
    const { options, changed, needRestart } = planReload(this.#options, input)
    // Keys and addresses that cannot be used are refused before anything has changed.
    const useKeys = prepareKeys?.(options)
    const node = this.#lifecycle.nodeInSight
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
    const { drainTimeoutMs, drainDelayMs } = this.#options
    return this.#lifecycle.stop({ drainMs: drainMs ?? drainTimeoutMs, delayMs: delayMs ?? drainDelayMs })
  }

  async publish(key: string, payload: unknown, options: PublishOptions = {}): Promise<PublishResult> {
    return this.#assertRunning().api.publish(key, payload, options)
  }

  async publishBatch(messages: readonly BatchMessage[]): Promise<readonly PublishResult[]> {
    return this.#assertRunning().api.publishBatch(messages)
  }

  async history(key: string, query: HistoryQuery = {}): Promise<HistoryResult> {
    return this.#assertRunning().api.history(key, query)
  }

  on<E extends keyof ServerEvents>(event: E, handler: (event: ServerEvents[E]) => unknown): () => void {
    return this.#events.on(event, handler)
  }

  listen(pattern: string, handler: LocalHandler, options: LocalListenOptions = {}): LocalSubscription {
    assertLocalPattern(pattern)
    const { group } = options
    if (group === undefined) return this.#subscribe(pattern, (node) => node.listen(pattern, handler, options))
    assertGroup(group)
    return this.#subscribe(pattern, (node) => node.api.join({ kind: 'listen', group, pattern }, handler))
  }

  respond(pattern: string, handler: LocalHandler, options: RespondOptions = {}): LocalSubscription {
    assertLocalPattern(pattern)
    const { group = DEFAULT_RESPONDERS } = options
    assertGroup(group)
    return this.#subscribe(pattern, (node) => node.api.join({ kind: 'respond', group, pattern }, handler))
  }

  async request(key: string, payload: unknown, { timeoutMs }: RequestOptions = {}): Promise<unknown> {
    return this.#assertRunning().api.request(key, payload, timeoutMs)
  }

  async stream(key: string, options: StreamOptions = {}): Promise<StreamWriter> {
    return this.#assertRunning().api.stream(key, options)
  }

  async readStream(key: string): Promise<StreamContent> {
    return this.#assertRunning().api.readStream(key)
  }

  #subscribe(pattern: string, begin: (node: ServerNode) => Promise<() => void>): LocalSubscription {
    if (this.#lifecycle.isStopping) throw notRunning()
    return new LateSubscription(
      pattern,
      this.#lifecycle.running.then((node) => () => begin(node)),
    )
  }

  async presence(key: string): Promise<readonly PresenceMember[]> {
    validateKey(key)
    return this.#assertRunning().api.presence(key)
  }

  reopenAuditLog(): void {
    this.#parts.audit?.reopen()
  }

  stats(): ServerStats {
    const node = this.#assertRunning()
    const tls = this.#certificates?.stats()
    const { audit, hooks, logger, webhook } = this.#parts
    const logLines = linesOf(logger)
    return {
      ...node.report.stats(),
      http: this.#http.frontend.stats(),
      hooks: hooks?.counts ?? NO_HOOK_COUNTS,
      ...(webhook && { webhook: webhook.stats }),
      ...(audit && { audit: audit.stats() }),
      ...(logLines && { logLines }),
      ...(tls === undefined ? undefined : { tls }),
    }
  }

  #assertRunning(): ServerNode {
    const { node } = this.#lifecycle
    if (node === undefined) throw notRunning()
    return node
  }

  #metricsSource(): MetricsSource {
    const { status, broker } = this.#lifecycle.health()
    const stats = this.#lifecycle.node && this.stats()
    return { node: this.#name, version: VERSION, broker: broker.name, status, stats }
  }
}

/** @throws {WebMQError} `E_PATTERN_INVALID` */
function assertLocalPattern(pattern: string): void {
  validatePattern(pattern)
  if (isReserved(pattern))
    throw new WebMQError('E_PATTERN_INVALID', { detail: 'patterns that begin with $ are reserved for servers' })
}

/** @throws {WebMQError} `E_OPTION_INVALID` */
function assertGroup(group: string): void {
  if (!isGroup(group)) throw new WebMQError('E_OPTION_INVALID', { detail: `group: ${group}` })
}

/** A subscription in the process that may begin before its server runs. */
class LateSubscription implements LocalSubscription {
  readonly pattern: string
  readonly ready: Promise<void>
  #isWanted = true
  #end: (() => void) | undefined

  /** @param begin Begins it once the server runs, and resolves with a function that ends it. */
  constructor(pattern: string, begin: Promise<() => Promise<() => void>>) {
    this.pattern = pattern
    this.ready = begin.then((begin) => this.#begin(begin))
    // Callers may ignore `ready`; a rejection that nobody handles must not crash the process.
    this.ready.catch(() => undefined)
  }

  close(): void {
    this.#isWanted = false
    this.#end?.()
    this.#end = undefined
  }

  [Symbol.dispose](): void {
    this.close()
  }

  async #begin(begin: () => Promise<() => void>): Promise<void> {
    if (!this.#isWanted) return
    const end = await begin()
    if (this.#isWanted) this.#end = end
    else end()
  }
}
