import type { IncomingMessage, Server as NodeHttpServer, ServerResponse } from 'node:http'
import { WebMQError } from 'webmq-client/protocol'
import type { ServerHttp } from '../../doors/http/create-http.js'
import type { ResolvedOptions } from '../../doors/options/server-options.js'
import type { CertificateStore } from '../../features/certificates/store.js'
import { describeTransport, type Health } from '../../features/observing/health/readiness.js'
import { StateLog } from '../../features/observing/health/state-log.js'
import { incidentLog } from '../../features/observing/incident-log.js'
import { combineObservers } from '../../features/observing/observer.js'
import { loadTracer } from '../../features/observing/tracing/tracer.js'
import { deferred } from '../base/deferred.js'
import { defined } from '../base/defined.js'
import type { TrustedProxies } from '../identity/trusted-proxies.js'
import { brokerNameOf } from '../ports/broker-address.js'
import type { Transport, TransportAddress } from '../ports/transport.js'
import type { Emitter, ServerEvents } from './emitter.js'
import { assertCapable, endpointUrl, roomFor, type ServerAddress, SocketFile } from './endpoint.js'
import { ServerNode } from './node.js'
import type { ChosenTransport, ServerNodeParts, ServerParts } from './parts.js'
import { NOTICES_STOP_MS, StopList } from './stop-list.js'
import { VERSION } from './version.js'

interface Running {
  readonly node: ServerNode
  readonly transport: Transport
}

/** Where a server is in its life; it only goes forward. */
type State =
  | { readonly name: 'idle' }
  /** `waiting`: the node, once it waits for its broker. */
  | { readonly name: 'starting'; readonly running: Promise<Running>; readonly waiting?: ServerNode }
  | { readonly name: 'running'; readonly running: Promise<Running>; readonly node: ServerNode }
  /** `node`: serves until its last connection is closed. */
  | { readonly name: 'stopping'; readonly stopped: Promise<void>; readonly node?: ServerNode | undefined }
  | { readonly name: 'stopped'; readonly stopped: Promise<void> }

/** How long connections are closed, and how long the server stays open before. */
interface StopTimes {
  readonly drainMs: number
  readonly delayMs: number
}

const AT_ONCE: StopTimes = { drainMs: 0, delayMs: 0 }
/** What starts and stops with a server. */
export interface LifecycleContext {
  readonly name: string
  readonly parts: ServerParts
  readonly events: Emitter<ServerEvents>
  readonly http: ServerHttp
  readonly certificates: CertificateStore | undefined
  readonly proxies: TrustedProxies
}

/** Starts the parts of a server in order, and stops them in the reverse order. */
export class Lifecycle {
  readonly #context: LifecycleContext
  readonly #stops: StopList
  readonly #becameRunning = deferred<ServerNode>()
  #state: State = { name: 'idle' }
  /** Of the server's own port, which `start` opens once. */
  #listening: Promise<ServerAddress> | undefined
  address: ServerAddress | undefined
  adminAddress: TransportAddress | undefined
  /** Known before the node waits for its broker. */
  #transport: ChosenTransport | undefined
  /** Known once the port is open. */
  #connectionLimit: number | undefined
  #stopTimes = AT_ONCE
  readonly #socketFile: SocketFile | undefined
  readonly #states: StateLog

  constructor(context: LifecycleContext) {
    this.#context = context
    // It rejects when the server stops, also when nobody waits for it.
    this.#becameRunning.promise.catch(() => undefined)
    const { parts, events, http } = context
    const { logger, verifier, audit, webhook, options } = parts
    this.#socketFile = SocketFile.of(options.host)
    this.#states = new StateLog({ health: () => this.health(), logger })
    this.#stops = new StopList(logger)
    this.#stops.add({ name: 'socket file', stop: () => this.#socketFile?.remove() })
    this.#stops.add({ name: 'events', stop: () => events.close() })
    this.#stops.add({ name: 'state log', stop: () => this.#states.stop() })
    this.#stops.add({ name: 'http', stop: () => http.frontend.close() })
    this.#stops.add({ name: 'verifier', stop: () => verifier?.close() })
    // After the node: it closes connections, which both report.
    this.#stops.add(
      { name: 'audit log', stop: () => audit?.close(NOTICES_STOP_MS) },
      { name: 'webhook', stop: () => webhook?.close(NOTICES_STOP_MS) },
    )
  }

  /** The node that serves. Also while the server stops, until the last connection is closed. */
  get node(): ServerNode | undefined {
    return 'node' in this.#state ? this.#state.node : undefined
  }

  /** The same, or the node that waits for its broker. */
  get nodeInSight(): ServerNode | undefined {
    return this.#state.name === 'starting' ? this.#state.waiting : this.node
  }

  /** Resolves once the node serves. Rejects with `E_NOT_RUNNING` when the server stops first. */
  get running(): Promise<ServerNode> {
    return this.#becameRunning.promise
  }

  get isStopping(): boolean {
    return 'stopped' in this.#state
  }

  /** See {@link Transport.takeStream}; `undefined` while there is no transport that serves event streams. */
  takeStream(request: IncomingMessage, response: ServerResponse): boolean | undefined {
    return this.#transport?.transport.takeStream?.(request, response)
  }

  start(): Promise<ServerAddress> {
    if (this.isStopping) return Promise.reject(notRunning())
    this.#listening ??= this.#listen()
    return this.#listening
  }

  async attach(httpServer: NodeHttpServer): Promise<() => void> {
    const { options, logger } = this.#context.parts
    const { node, transport } = await this.#run(httpServer)
    const detach = node.attach(httpServer)
    try {
      this.#connectionLimit ??= roomFor(transport, options, logger)
      return detach
    } catch (error) {
      detach()
      throw error
    }
  }

  stop(times: StopTimes): Promise<void> {
    const state = this.#state
    if (state.name === 'starting') state.waiting?.giveUp()
    // A start in progress ends first; its own caller gets its error.
    const started = Promise.allSettled(['running' in state ? state.running : undefined, this.#listening])
    return this.#leave(times, started)
  }

  health(): Health {
    const health = this.node?.report.health() ?? this.#healthWithoutNode()
    const { certificates, parts } = this.#context
    const audit = parts.audit?.stats()
    return {
      ...health,
      ...defined({
        transport: this.#transport?.choice,
        connectionLimit: this.#connectionLimit,
        certificate: certificates?.defect,
        auditLinesLost: audit?.droppedCount || undefined,
        auditWaitingBytes: audit?.waitingBytes || undefined,
        webhook: (parts.webhook?.stats.breaker ?? 'closed') === 'closed' ? undefined : 'open',
      }),
    }
  }

  #healthWithoutNode(): Health {
    const { name, parts } = this.#context
    const waiting = this.nodeInSight?.report.health().broker
    const broker = waiting ?? { name: brokerNameIn(parts.options), status: 'down', sinceMs: 0 }
    const status = this.isStopping ? 'stopped' : 'starting'
    return { status, node: name, version: VERSION, uptimeMs: 0, connections: 0, broker }
  }

  async #listen(): Promise<ServerAddress> {
    const { options, logger } = this.#context.parts
    const { node, transport } = await this.#run()
    try {
      await this.#socketFile?.clear()
      const { host, port } = await transport.start(node.sink)
      this.#socketFile?.bound(options.socketMode)
      this.#connectionLimit ??= roomFor(transport, options, logger)
      this.#context.certificates?.watch(transport)
      this.address = { host, port, url: endpointUrl(host, port, options) }
    } catch (error) {
      // A stop that runs already waits for this start.
      if (this.#state.name === 'running') await this.#leave(AT_ONCE)
      throw error
    }
    logger.info({ ...this.address, node: this.#context.name, version: VERSION }, 'listening')
    return this.address
  }

  /** Starts everything but the port, once. */
  #run(attachTo?: NodeHttpServer): Promise<Running> {
    const state = this.#state
    if ('stopped' in state) return Promise.reject(notRunning())
    if ('running' in state) return state.running
    this.#states.start()
    const running = this.#bringUp(attachTo)
    this.#state = { name: 'starting', running }
    return running
  }

  async #bringUp(attachTo: NodeHttpServer | undefined): Promise<Running> {
    const { options, audit, createBroker, createOutbox } = this.#context.parts
    const stops = this.#stops
    try {
      // First, because its library may be missing. It connects when the node starts.
      const broker = await createBroker(options)
      const outbox = await createOutbox?.(options)
      await this.#context.certificates?.load()
      audit?.open()
      const tracer = await loadTracer(VERSION, this.#context.parts.logger)
      // Before the node, so that probes get `starting` while the server waits for its broker.
      await this.#listenForAdmins()
      const transport = await this.#createTransport(attachTo)
      const node = this.#createNode({ broker, outbox, transport, tracer })
      if (this.#state.name === 'starting') this.#state = { ...this.#state, waiting: node }
      // `stop` was called while the broker was being created.
      else node.giveUp()
      await node.start()
      stops.add({ name: 'node', stop: () => node.stop(this.#stopTimes.drainMs, this.#stopTimes.delayMs) })
      stops.add({ name: 'certificates', stop: () => this.#context.certificates?.stop() })
      if (this.#state.name === 'starting') this.#state = { name: 'running', running: this.#state.running, node }
      this.#becameRunning.resolve(node)
      return { node, transport }
    } catch (error) {
      // The start tells why it has failed; `stop` gives the same promise.
      this.#leave(AT_ONCE).catch((err: unknown) =>
        this.#context.parts.logger.error({ err }, 'a failed start was not cleaned up'),
      )
      throw error
    }
  }

  #createNode(started: Pick<ServerNodeParts, 'broker' | 'outbox' | 'transport' | 'tracer'>): ServerNode {
    const { options, logger, verifier, hooks, webhook, observers = [], audit } = this.#context.parts
    const observer = combineObservers([
      incidentLog({ logger, now: () => performance.now() }),
      ...observers,
      ...(webhook === undefined ? [] : [webhook.observer]),
      ...(audit === undefined ? [] : [audit.observer()]),
    ])
    return new ServerNode({
      ...started,
      options,
      verifier,
      proxies: this.#context.proxies,
      hooks,
      logger,
      name: this.#context.name,
      events: this.#context.events,
      observer,
      occupancy: webhook?.occupancy,
    })
  }

  async #listenForAdmins(): Promise<void> {
    const { http, parts } = this.#context
    const { admin } = http
    const { adminPort, adminHost } = parts.options
    if (admin === undefined || adminPort === undefined) return
    this.adminAddress = await admin.listen(adminPort, adminHost)
    this.#stops.add({ name: 'admin port', stop: () => admin.close() })
    parts.logger.info({ ...this.adminAddress }, 'the admin port listens')
  }

  async #createTransport(attachTo: NodeHttpServer | undefined): Promise<Transport> {
    const { options, logger, createTransport } = this.#context.parts
    const certificates = this.#context.certificates?.certificates
    const httpServer = this.#context.http.frontend.server
    const chosen = await createTransport(options, { httpServer, certificates, attachTo })
    assertCapable(chosen.transport, options, attachTo !== undefined)
    this.#transport = chosen
    logger.info({ transport: chosen.choice }, describeTransport(chosen.choice))
    return chosen.transport
  }

  /** Stops for good, once. Everything that was started ends in the reverse order, after `before`. */
  #leave(times: StopTimes, before?: Promise<unknown>): Promise<void> {
    const state = this.#state
    if ('stopped' in state) return state.stopped
    this.#stopTimes = times
    const stopped = this.#stopAll(before)
    this.#state = { name: 'stopping', stopped, node: state.name === 'running' ? state.node : undefined }
    return stopped
  }

  async #stopAll(before: Promise<unknown> | undefined): Promise<void> {
    await before
    this.#becameRunning.reject(notRunning())
    await this.#stops.stop()
    this.address = undefined
    this.adminAddress = undefined
    if (this.#state.name === 'stopping') this.#state = { name: 'stopped', stopped: this.#state.stopped }
    this.#context.parts.logger.info({ node: this.#context.name }, 'stopped')
  }
}

/** The broker's name before the broker exists. */
function brokerNameIn({ broker }: ResolvedOptions): string {
  return typeof broker === 'string' ? (brokerNameOf(broker) ?? 'unknown') : broker.name
}

/** The server does not run yet, or no longer. */
export function notRunning(): WebMQError {
  return new WebMQError('E_NOT_RUNNING')
}
