import type { Server as NodeHttpServer } from 'node:http'
import { WebMQError } from 'webmq-client/protocol'
import { originPolicyOf } from '../../doors/options/access.js'
import { deferred } from '../base/deferred.js'
import { within } from '../base/within.js'
import type { Broker, InboundMessage } from '../ports/broker.js'
import { secretHider } from '../ports/broker-address.js'
import { isReserved } from '../ports/reserved-keys.js'
import type { TransportSink } from '../ports/transport.js'
import { configuredLimitsOf } from '../session/effective-limits.js'
import { assemble, type Rooms } from './assemble.js'
import { drain, drainSpreadMs, wait } from './drain.js'
import type { NodePhase, ServerNodeParts } from './parts.js'
import { NodeReport } from './report.js'
import {
  BROKER_GRACE_MS,
  BROKER_SHARE_MS,
  NODE_STOP_MS,
  STREAMS_SHARE_MS,
  StopList,
  TIMERS_EARLY_MS,
} from './stop-list.js'

/** Connects a transport with a broker: one node, from its start to its end. */
export class ServerNode {
  readonly parts: ServerNodeParts
  readonly #phase: NodePhase
  readonly rooms: Rooms
  readonly #stops: StopList
  readonly #givenUp = deferred<never>()
  readonly report: NodeReport

  constructor(parts: ServerNodeParts) {
    this.parts = parts
    this.#givenUp.promise.catch(() => undefined)
    const { broker } = parts.options
    this.#phase = {
      isLeaving: false,
      drainEndMs: undefined,
      origins: originPolicyOf(parts.options),
      hideSecrets: typeof broker === 'string' ? secretHider(broker) : (text) => text,
    }
    this.#stops = new StopList(parts.logger)
    this.rooms = assemble(parts, this.#phase, this.#stops, () => this.report.summary())
    this.report = new NodeReport(parts, this.#phase, this.rooms)
    this.#stops.add({ name: 'report', stop: () => this.report.stop() })
  }

  /** The options that the node shares with its server have changed, those that may. */
  optionsChanged(): void {
    const { options } = this.parts
    this.rooms.limits.change(configuredLimitsOf(options))
    this.#phase.origins = originPolicyOf(options)
    this.rooms.addresses.max = options.maxConnectionsPerAddress
    this.rooms.users.max = options.maxConnectionsPerUser
    this.rooms.gateway.limitsChanged()
  }

  /** See {@link Broker.setAddress}. @throws {WebMQError} `E_OPTION_INVALID`; the old address stays. */
  setBrokerAddress(address: string): void {
    this.rooms.broker.setAddress?.(address)
    const [hideOld, hideNew] = [this.#phase.hideSecrets, secretHider(address)]
    this.#phase.hideSecrets = (text) => hideNew(hideOld(text))
  }

  /** Takes upgrades of a server of the embedder too. */
  attach(server: NodeHttpServer): () => void {
    const { transport, options } = this.parts
    return transport.attach(server, this.sink, options.path)
  }

  get sink(): TransportSink {
    return this.rooms.gateway
  }

  /** Aborts a start that waits for the broker, or for other nodes. */
  giveUp(): void {
    this.#givenUp.reject(new WebMQError('E_NOT_RUNNING', { detail: 'stopped before the broker was reached' }))
  }

  /**
   * Starts the broker. Once this resolves, connections may come.
   * @throws {WebMQError} The errors of {@link Broker.start}, without secrets; all parts of the node are then stopped.
   *   `E_NOT_RUNNING` after `giveUp`.
   */
  async start(): Promise<void> {
    const { events } = this.parts
    const { broker } = this.rooms
    const deliver = (message: InboundMessage) =>
      // Messages between servers never reach a listener, whatever its pattern.
      isReserved(message.key) ? this.rooms.nodes.channel.receive(message) : this.rooms.delivery.deliver(message)
    const started = broker.start({
      deliver: (message) => this.rooms.refused.deliver(message, deliver),
      gap: (reason, isAffected) => {
        this.rooms.delivery.gap(reason, isAffected)
        this.rooms.nodes.gap()
        events.emit('gap', { reason })
      },
      refused: (message) => this.rooms.refused.add(message),
      status: (status, cause) => {
        this.rooms.watch.change(status, cause)
        this.rooms.nodes.status(status)
      },
    })
    try {
      await Promise.race([this.#givenUp.promise, started])
      await Promise.race([this.#givenUp.promise, this.rooms.nodes.begin()])
    } catch (error) {
      // The other nodes may know this one by now.
      await this.#stops.stop()
      this.rooms.watch.stop()
      await this.#stopBroker(NODE_STOP_MS)
      await this.parts.transport.stop()
      throw this.#withoutSecrets(error)
    }
    void this.#warnOfLog()
    this.rooms.full.start()
    const { author, publisher } = this.rooms
    this.parts.outbox?.start((message) => publisher.publish(author, message, message.isBinary))
  }

  /** Says once what the settings of the broker may lose. A broker that does not tell delays and ends nothing. */
  async #warnOfLog(): Promise<void> {
    const { logger, broker } = this.parts
    try {
      const risk = await broker.log?.risk()
      if (risk === undefined) return
      logger.warn({ broker: broker.name, warning: 'unsynced-log' }, `the log may lose its end: ${risk}`)
    } catch (err) {
      logger.debug(
        { broker: broker.name, err: this.#withoutSecrets(err) },
        'the broker does not tell how safe its log is',
      )
    }
  }

  /** Returns the error itself, or a copy without the secrets that it contains. */
  #withoutSecrets(error: unknown): unknown {
    if (!(error instanceof Error)) return error
    const shown = this.#phase.hideSecrets(error.message)
    const { code } = error instanceof WebMQError ? error : new WebMQError('E_BROKER_UNAVAILABLE')
    return shown === error.message && error instanceof WebMQError ? error : new WebMQError(code, { message: shown })
  }

  /** Drains and stops the node; see {@link WebMQServer.stop}. */
  async stop(drainMs: number, delayMs: number): Promise<void> {
    const { transport, logger } = this.parts
    const { broker } = this.rooms
    this.#phase.isLeaving = true
    if (delayMs > 0) {
      logger.info({ delayMs }, 'leaving: not ready any more, and still accepting connections')
      await wait(delayMs)
    }
    const sessions = this.rooms.sessions
    const spreadMs = drainSpreadMs(sessions.size, drainMs, this.parts.options.drainPerSecond)
    const startMs = performance.now()
    const endMs = startMs + spreadMs + NODE_STOP_MS
    const leftMs = (reservedMs: number) => Math.max(0, endMs - reservedMs - performance.now())
    this.#phase.drainEndMs = startMs + spreadMs
    // Another node goes on with the rows.
    const outboxStopped = this.parts.outbox?.stop(leftMs(BROKER_SHARE_MS))
    // The port stays open: probes get answers, and upgrades a 503 with a reason.
    await drain({ sessions, logger }, spreadMs, leftMs(BROKER_SHARE_MS))
    await within(this.rooms.features.streams.failAll(), Math.min(STREAMS_SHARE_MS, leftMs(BROKER_SHARE_MS)))
    await transport.stopAccepting()
    const connections = sessions.size
    await transport.stop(leftMs(BROKER_SHARE_MS))
    await outboxStopped
    // Before this node says good-bye to the others, which is no publish of a user.
    const pendingCount = broker.stats().pendingCount - this.rooms.nodes.channel.pendingCount
    await this.#stops.stop()
    const { rejectedCount } = broker.stats()
    this.rooms.watch.stop()
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
    const { logger } = this.parts
    const { broker } = this.rooms
    const startedMs = performance.now()
    const stopped = broker.stop(limitMs).catch((err: unknown) => {
      logger.error({ err }, 'the broker could not be stopped')
    })
    const isStopped = await within(stopped, limitMs + BROKER_GRACE_MS)
    return isStopped && performance.now() - startedMs < Math.max(1, limitMs - TIMERS_EARLY_MS)
  }
}
