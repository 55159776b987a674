import { randomBytes } from 'node:crypto'
import type { IncomingMessage, Server as NodeHttpServer, ServerResponse } from 'node:http'
import {
  assertOptions,
  isErrorCode,
  isGroup,
  type PresenceMember,
  validateKey,
  validatePattern,
  WebMQError,
} from 'webmq-client/protocol'
import { CertificateStore } from '../../features/certificates/store.js'
import { copyBytes } from '../../kernel/base/copy-bytes.js'
import { logBug } from '../../kernel/base/log-bug.js'
import { linesOf, setLogLevel } from '../../kernel/base/logger.js'
import { andThen } from '../../kernel/base/maybe-promise.js'
import { parseJson } from '../../kernel/base/parse-json.js'
import { NO_HOOK_COUNTS } from '../../kernel/identity/hook-port.js'
import { TrustedProxies } from '../../kernel/identity/trusted-proxies.js'
import { Emitter, type ServerEvents } from '../../kernel/node/emitter.js'
import type { ServerAddress } from '../../kernel/node/endpoint.js'
import { Lifecycle, notRunning } from '../../kernel/node/lifecycle.js'
import type { ServerNode } from '../../kernel/node/node.js'
import type { ServerParts } from '../../kernel/node/parts.js'
import type { ServerStats } from '../../kernel/node/stats.js'
import { VERSION } from '../../kernel/node/version.js'
import { formatPosition } from '../../kernel/ports/position.js'
import { isReserved } from '../../kernel/ports/reserved-keys.js'
import type { TransportAddress } from '../../kernel/ports/transport.js'
import { assertKeyWords } from '../../kernel/ports/word-limits.js'
import {
  type BatchMessage,
  type PublishOptions,
  type PublishResult,
  resultOf,
} from '../../kernel/publishing/publish-options.js'
import { DEFAULT_WITHIN_MS, MAX_WITHIN_MS } from '../../kernel/publishing/requests.js'
import type { LocalHandler, LocalListenOptions, LocalSubscription } from '../../kernel/routing/local-listeners.js'
import type { RoutedNode } from '../http/api/handlers/handler.js'
import { createHttp, type ServerHttp } from '../http/create-http.js'
import { metricsPage } from '../metrics/page.js'
import type { MetricsSource } from '../metrics/table.js'
import { planReload } from '../options/reload.js'
import { type ResolvedOptions, type ServerOptions, tlsFilesOf } from '../options/server-options.js'
import { routedNode } from './http-node.js'
import { LateSubscription } from './late-subscription.js'
import { EVENTS, HISTORY, LISTEN, MESSAGE, PUBLISH, REQUEST, RESPOND, STOP, STREAM } from './option-kinds.js'
import { ProcessDraft } from './process-draft.js'
import { type HistoryQuery, type HistoryResult, readHistory } from './read-history.js'
import type {
  ReloadResult,
  RequestOptions,
  RespondOptions,
  StopOptions,
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
  /** Of the one node that a server has in its life. */
  #routedNode: RoutedNode | undefined

  constructor(parts: ServerParts) {
    this.#options = { ...parts.options }
    this.#parts = { ...parts, options: this.#options }
    const { logger, verifier, hooks, demo } = parts
    const { tls, trustedProxies } = this.#options
    this.#events = new Emitter((err, event) => logBug(logger, { err, event }, 'a handler of an event failed'))
    this.#certificates = tls === undefined ? undefined : new CertificateStore(tlsFilesOf(tls), logger)
    const proxies = new TrustedProxies(trustedProxies)
    this.#http = createHttp({
      options: this.#options,
      logger,
      verifier,
      hooks,
      proxies,
      demo,
      node: () => {
        const { node } = this.#lifecycle
        this.#routedNode ??= node && routedNode(node)
        return node && this.#routedNode
      },
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

  async stop(options: StopOptions = {}): Promise<void> {
    assertOptions('stop: ', options, STOP)
    const { drainMs, delayMs } = options
    const { drainTimeoutMs, drainDelayMs } = this.#options
    return this.#lifecycle.stop({ drainMs: drainMs ?? drainTimeoutMs, delayMs: delayMs ?? drainDelayMs })
  }

  async publish(key: string, payload: unknown, options: PublishOptions = {}): Promise<PublishResult> {
    const { parts, rooms } = this.#running
    assertOptions('publish: ', options, PUBLISH)
    const { id, traceparent = parts.tracer?.active, ephemeral } = options
    const draft = new ProcessDraft().fill({ key, payload, id, traceparent, ephemeral })
    return andThen(rooms.publisher.publish(rooms.author, draft, draft.isBinary), resultOf)
  }

  async publishBatch(messages: readonly BatchMessage[]): Promise<readonly PublishResult[]> {
    const { publisher, author } = this.#running.rooms
    if (!Array.isArray(messages)) throw new WebMQError('E_OPTION_INVALID', { detail: 'publishBatch: not a list' })
    const draft = new ProcessDraft()
    const accepted = await publisher.publishAll(author, messages.length, (index) => {
      const message: BatchMessage = Object(messages[index])
      assertOptions('', message, MESSAGE)
      return draft.fill(message)
    })
    return accepted.map(resultOf)
  }

  async history(key: string, query: HistoryQuery = {}): Promise<HistoryResult> {
    const { rooms, parts } = this.#running
    assertOptions('history: ', query, HISTORY)
    return readHistory(rooms.broker, key, query, parts.options)
  }

  on<E extends keyof ServerEvents>(event: E, handler: (event: ServerEvents[E]) => unknown): () => void {
    assertOptions('on: ', { [event]: handler }, EVENTS)
    return this.#events.on(event, handler)
  }

  listen(pattern: string, handler: LocalHandler, options: LocalListenOptions = {}): LocalSubscription {
    assertLocal(pattern, handler)
    assertOptions('listen: ', options, LISTEN)
    const { group } = options
    if (group === undefined) return this.#subscribe(pattern, ({ rooms }) => rooms.listen(pattern, handler, options))
    assertGroup(group)
    const listener = { kind: 'listen', group, pattern } as const
    return this.#subscribe(pattern, ({ rooms }) => rooms.features.queueGroups.join(listener, handler))
  }

  respond(pattern: string, handler: LocalHandler, options: RespondOptions = {}): LocalSubscription {
    assertLocal(pattern, handler)
    assertOptions('respond: ', options, RESPOND)
    const { group = DEFAULT_RESPONDERS } = options
    assertGroup(group)
    const listener = { kind: 'respond', group, pattern } as const
    return this.#subscribe(pattern, ({ rooms }) => rooms.features.queueGroups.join(listener, handler))
  }

  async request(key: string, payload: unknown, options: RequestOptions = {}): Promise<unknown> {
    const { publisher, author } = this.#running.rooms
    assertOptions('request: ', options, REQUEST)
    const { timeoutMs = DEFAULT_WITHIN_MS } = options
    if (!(timeoutMs >= 1 && timeoutMs <= MAX_WITHIN_MS)) {
      throw new WebMQError('E_OPTION_INVALID', { detail: `timeoutMs is 1 to ${MAX_WITHIN_MS}` })
    }
    const draft = new ProcessDraft().fill({ key, payload })
    const taken = await publisher.request(author, draft, draft.isBinary, Math.ceil(timeoutMs))
    const reply = await taken.reply
    if (!reply.isError) return reply.isBinary ? reply.payload : parseJson(reply.payload)
    const { code, message } = Object(parseJson(reply.payload)) as {
      readonly code?: unknown
      readonly message?: unknown
    }
    const known = typeof code === 'string' && isErrorCode(code) ? code : 'E_RESPONSE'
    throw new WebMQError(known, typeof message === 'string' ? { message } : {})
  }

  async stream(key: string, options: StreamOptions = {}): Promise<StreamWriter> {
    const { features, author } = this.#running.rooms
    validateKey(key)
    assertOptions('stream: ', options, STREAM)
    return features.streams.begin(author, key, options.meta, true)
  }

  async readStream(key: string): Promise<StreamContent> {
    const { parts, rooms } = this.#running
    const { features, author } = rooms
    validateKey(key)
    assertKeyWords(key, parts.options)
    const { facts, whole, position } = await features.streams.read(key, false, author)
    const { stream: id, status, isCut = false } = facts
    const [meta, result] = [facts.meta, facts.result].map((json) =>
      json === undefined ? undefined : parseJson(json.text),
    )
    const content = typeof whole === 'object' ? { bytes: copyBytes(whole) } : { text: whole ?? '' }
    return { id, status, meta, result, isCut, position: formatPosition(position), ...content }
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
    const { parts, rooms } = this.#running
    assertKeyWords(key, parts.options)
    return rooms.features.presence.list(key)
  }

  reopenAuditLog(): void {
    this.#parts.audit?.reopen()
  }

  stats(): ServerStats {
    const node = this.#running
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

  /** @throws {WebMQError} `E_NOT_RUNNING` */
  get #running(): ServerNode {
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

/** @throws {WebMQError} `E_PATTERN_INVALID`, `E_OPTION_INVALID` */
function assertLocal(pattern: string, handler: LocalHandler): void {
  validatePattern(pattern)
  if (isReserved(pattern))
    throw new WebMQError('E_PATTERN_INVALID', { detail: 'patterns that begin with $ are reserved for servers' })
  if (typeof handler !== 'function') throw new WebMQError('E_OPTION_INVALID', { detail: 'handler is not a function' })
}

/** @throws {WebMQError} `E_OPTION_INVALID` */
function assertGroup(group: string): void {
  if (typeof group !== 'string' || !isGroup(group))
    throw new WebMQError('E_OPTION_INVALID', { detail: `group: ${group}` })
}
