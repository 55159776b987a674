import { isMessageId, MESSAGE_OVERHEAD_BYTES, validateKey, WebMQError } from 'webmq-client/protocol'
import type { Broker, BrokerStatus } from './broker.js'
import { Captures } from './captures.js'
import { Deadlines } from './deadlines.js'
import { Delivery } from './delivery.js'
import { Dispatcher } from './dispatcher.js'
import { drain, drainSpreadMs } from './drain.js'
import { Gateway } from './gateway.js'
import type { Health } from './http.js'
import type { TokenVerifier } from './identity/index.js'
import { Interest } from './interest.js'
import { type LocalHandler, LocalListeners } from './local-listeners.js'
import type { Logger } from './logger.js'
import { andThen } from './maybe-promise.js'
import type { ResolvedOptions } from './options.js'
import { Router } from './router.js'
import { Sessions } from './sessions.js'
import type { Transport, TransportSink } from './transport.js'
import { VERSION } from './version.js'
import type { PublishOptions, PublishResult, ServerStats } from './webmq-server.js'

/** What a {@link ServerNode} is put together from. */
export interface ServerNodeParts {
  readonly options: ResolvedOptions
  readonly transport: Transport
  readonly broker: Broker
  readonly verifier: TokenVerifier | undefined
  readonly log: Logger
  /** Names this node towards clients; says nothing about the machine. */
  readonly name: string
}

/** Everything that runs between a transport and a broker: one node, from its start to its end. */
export class ServerNode {
  readonly #parts: ServerNodeParts
  readonly #router = new Router()
  readonly #sessions = new Sessions()
  readonly #dispatcher = new Dispatcher()
  readonly #localListeners: LocalListeners
  readonly #interest: Interest
  readonly #deadlines: Deadlines
  readonly #delivery: Delivery
  readonly #gateway: Gateway
  readonly #startedMs = performance.now()
  #brokerStatus: BrokerStatus = 'down'
  #drainRetryAfterMs: number | undefined

  constructor(parts: ServerNodeParts) {
    this.#parts = parts
    const { options, transport, broker, verifier, log, name } = parts
    const captures = new Captures()
    this.#localListeners = new LocalListeners(log)
    this.#interest = new Interest(this.#router, broker, (err) => log.error({ err }, 'a binding could not be ended'))
    this.#deadlines = new Deadlines({ onError: (err) => log.error({ err }, 'a deadline failed') })
    this.#delivery = new Delivery({ router: this.#router, transport, captures, localListeners: this.#localListeners })
    const { maxPayloadBytes, maxOutboxBytes, maxListensPerConnection, authTimeoutMs, handshakeTimeoutMs } = options
    this.#gateway = new Gateway({
      path: options.path,
      origins: options.origins,
      // Without tokens the address is all that keeps strangers out, and a page of theirs is on this machine.
      ownHosts: options.jwt === undefined && !options.insecure ? 'loopback' : 'all',
      transport,
      sessions: this.#sessions,
      dispatcher: this.#dispatcher,
      handshakeTimeoutMs,
      node: name,
      version: VERSION,
      heartbeatMs: options.pingIntervalMs,
      drainRetryAfterMs: () => this.#drainRetryAfterMs,
      services: {
        transport,
        broker,
        verifier,
        interest: this.#interest,
        captures,
        maxCaptureBytes: maxOutboxBytes,
        deadlines: this.#deadlines,
        limits: {
          maxPayloadBytes,
          maxListensPerConnection,
          authTimeoutMs,
          // The other half is for live messages; the largest message must fit whatever the halves are.
          maxReplayBytes: Math.max(maxOutboxBytes / 2, maxPayloadBytes + MESSAGE_OVERHEAD_BYTES),
        },
        log,
        now: Date.now,
      },
    })
  }

  /** What the transport tells of its connections. */
  get sink(): TransportSink {
    return this.#gateway
  }

  /** Brings the broker up; from then on connections may come. */
  start(): Promise<void> {
    const { broker, log } = this.#parts
    return broker.start({
      deliver: (message) => this.#delivery.deliver(message),
      status: (status, cause) => {
        this.#brokerStatus = status
        log.info({ broker: broker.name, status, err: cause }, 'broker status')
      },
    })
  }

  /** Publishes from inside the process; see {@link WebMQServer.publish}. */
  async publish(key: string, payload: unknown, { id }: PublishOptions): Promise<PublishResult> {
    validateKey(key)
    if (id !== undefined && !isMessageId(id)) throw new WebMQError('E_MESSAGE_INVALID', { detail: 'message id' })
    const isBinary = payload instanceof Uint8Array
    const bytes = isBinary ? payload : encodeJson(payload)
    const { maxPayloadBytes } = this.#parts.options
    if (bytes.length > maxPayloadBytes) {
      throw new WebMQError('E_PAYLOAD_TOO_LARGE', { detail: `${bytes.length} bytes, at most ${maxPayloadBytes}` })
    }
    const message = { key, payload: bytes, isBinary, ...(id === undefined ? undefined : { messageId: id }) }
    const { position, isDuplicate } = await this.#parts.broker.publish(message)
    return { duplicate: isDuplicate, ...(position === undefined ? undefined : { position }) }
  }

  /** Adds a handler in the process; resolves to what takes it away again once it is live. */
  async listen(pattern: string, handler: LocalHandler): Promise<() => void> {
    return await andThen(this.#interest.retain(pattern), (group) => {
      const listener = { group, handler }
      this.#localListeners.add(listener)
      return () => {
        this.#localListeners.remove(listener)
        this.#interest.release(pattern)
      }
    })
  }

  health(): Health {
    const { broker, name } = this.#parts
    return {
      status: this.#drainRetryAfterMs === undefined ? 'ok' : 'draining',
      node: name,
      version: VERSION,
      uptimeMs: Math.round(performance.now() - this.#startedMs),
      connections: this.#sessions.size,
      broker: { name: broker.name, status: this.#brokerStatus },
    }
  }

  stats(): ServerStats {
    return {
      connectionCount: this.#sessions.size,
      patternCount: this.#router.patternCount,
      receivedCount: this.#dispatcher.receivedCount,
      routedCount: this.#delivery.routedCount,
      localDroppedCount: this.#localListeners.droppedCount,
      transport: this.#parts.transport.stats(),
    }
  }

  /** Sends all clients away and ends everything; see {@link WebMQServer.stop}. */
  async stop(drainMs: number): Promise<void> {
    const { transport, broker, options, log } = this.#parts
    this.#drainRetryAfterMs = drainSpreadMs(this.#sessions.size, drainMs)
    await transport.stopAccepting()
    const settled = () => this.#dispatcher.settled()
    await drain({ sessions: this.#sessions, settled, closeTimeoutMs: options.closeTimeoutMs, log }, drainMs)
    await transport.stop()
    this.#deadlines.stop()
    await broker.stop()
  }
}

const encoder = new TextEncoder()

function encodeJson(payload: unknown): Uint8Array {
  let json: string | undefined
  try {
    json = JSON.stringify(payload)
  } catch (cause) {
    throw new WebMQError('E_PAYLOAD_INVALID', { cause })
  }
  if (json === undefined) throw new WebMQError('E_PAYLOAD_INVALID', { detail: `${typeof payload} has no JSON` })
  return encoder.encode(json)
}
