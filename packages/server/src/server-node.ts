import { isMessageId, MESSAGE_OVERHEAD_BYTES, validateKey, WebMQError } from 'webmq-client/protocol'
import type { Accepted, Broker, BrokerStatus, OutboundMessage } from './broker.js'
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
import { andThen, isPromise, type MaybePromise } from './maybe-promise.js'
import type { ResolvedOptions } from './options.js'
import { formatPosition } from './position.js'
import { Router } from './router.js'
import { Sessions } from './sessions.js'
import type { Transport, TransportSink } from './transport.js'
import { VERSION } from './version.js'
import type { BatchMessage, PublishOptions, PublishResult, ServerStats } from './webmq-server.js'
import { WirePositions } from './wire-positions.js'

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
    const positions = new WirePositions()
    this.#localListeners = new LocalListeners(log)
    this.#interest = new Interest(this.#router, broker, (err) => log.error({ err }, 'a binding could not be ended'))
    this.#deadlines = new Deadlines({ onError: (err) => log.error({ err }, 'a deadline failed') })
    const [router, localListeners] = [this.#router, this.#localListeners]
    this.#delivery = new Delivery({ router, transport, captures, localListeners, positions })
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
        positions,
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
      gap: (reason) => this.#delivery.gap(reason),
      status: (status, cause) => {
        this.#brokerStatus = status
        log.info({ broker: broker.name, status, err: cause }, 'broker status')
      },
    })
  }

  /** Publishes from inside the process; see {@link WebMQServer.publish}. */
  publish(key: string, payload: unknown, { id }: PublishOptions): MaybePromise<PublishResult> {
    const message = outbound(key, payload, id, this.#parts.options.maxPayloadBytes)
    return this.#whenWritable(andThen(this.#parts.broker.publish(message), resultOf))
  }

  /** See {@link WebMQServer.publishBatch}. Brokers that wait for an answer do so for all messages at once. */
  publishBatch(batch: readonly BatchMessage[]): MaybePromise<readonly PublishResult[]> {
    const { broker, options } = this.#parts
    const messages = outboundBatch(batch, options.maxPayloadBytes)
    const results = new Array<PublishResult>(messages.length)
    const waiting: Promise<unknown>[] = []
    try {
      for (let index = 0; index < messages.length; index++) {
        const accepted = broker.publish(messages[index] as OutboundMessage)
        if (isPromise(accepted)) waiting.push(accepted.then((accepted) => (results[index] = resultOf(accepted))))
        else results[index] = resultOf(accepted)
      }
    } catch (error) {
      // Beside those that may already be on their way, and fail too.
      waiting.push(Promise.reject(error))
    }
    return this.#whenWritable(waiting.length > 0 ? Promise.all(waiting).then(() => results) : results)
  }

  /** Holds a result back while the transport asks those who publish to wait. */
  #whenWritable<T>(result: MaybePromise<T>): MaybePromise<T> {
    const writable = this.#parts.transport.writable?.()
    return writable === undefined ? result : Promise.all([result, writable]).then(([settled]) => settled)
  }

  /** Adds a handler in the process; resolves to what takes it away again once it is live. */
  async listen(pattern: string, handler: LocalHandler): Promise<() => void> {
    return await andThen(this.#interest.retain(pattern), ({ group }) => {
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

/** @throws {WebMQError} what {@link WebMQServer.publishBatch} throws. */
function outboundBatch(batch: readonly BatchMessage[], maxPayloadBytes: number): OutboundMessage[] {
  const messages = new Array<OutboundMessage>(batch.length)
  let index = 0
  try {
    for (const { key, payload, id } of batch) messages[index++] = outbound(key, payload, id, maxPayloadBytes)
  } catch (error) {
    if (!(error instanceof WebMQError)) throw error
    throw new WebMQError(error.code, { message: `message ${index - 1} of the batch: ${error.message}`, cause: error })
  }
  return messages
}

/** The last key that was valid: publications often come in runs to one key. */
let validKey: string | undefined

/** @throws {WebMQError} what {@link WebMQServer.publish} throws. */
function outbound(key: string, payload: unknown, id: string | undefined, maxPayloadBytes: number): OutboundMessage {
  if (key !== validKey) {
    validateKey(key)
    validKey = key
  }
  if (id !== undefined && !isMessageId(id)) throw new WebMQError('E_MESSAGE_INVALID', { detail: 'message id' })
  const isBinary = payload instanceof Uint8Array
  const bytes = isBinary ? payload : encodeJson(payload)
  if (bytes.length > maxPayloadBytes) {
    throw new WebMQError('E_PAYLOAD_TOO_LARGE', { detail: `${bytes.length} bytes, at most ${maxPayloadBytes}` })
  }
  return id === undefined ? { key, payload: bytes, isBinary } : { key, payload: bytes, isBinary, messageId: id }
}

function resultOf({ position, isDuplicate }: Accepted): PublishResult {
  return position === undefined
    ? { duplicate: isDuplicate }
    : { duplicate: isDuplicate, position: formatPosition(position) }
}

function encodeJson(payload: unknown): Uint8Array {
  let json: string | undefined
  try {
    json = JSON.stringify(payload)
  } catch (cause) {
    throw new WebMQError('E_PAYLOAD_INVALID', { cause })
  }
  if (json === undefined) throw new WebMQError('E_PAYLOAD_INVALID', { detail: `${typeof payload} has no JSON` })
  // A quarter of the time of a TextEncoder, for small texts.
  return Buffer.from(json)
}
