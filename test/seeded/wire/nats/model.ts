import type { WireBroker, WireLink, WireSession } from '../broker.js'
import { NatsClientConnection } from './connection.js'
import type { ModelCore, ModelSubscriber, NatsModelOptions, Publisher } from './core.js'
import { JetStreamModel, type JetStreamPresence, type JetStreamSnapshot } from './jetstream.js'
import type { NatsMessage } from './protocol.js'
import { SubjectIndex } from './subjects.js'

const DEFAULTS: NatsModelOptions = {
  port: 4_222,
  hasJetStream: true,
  hasCluster: false,
  maxPayloadBytes: 1_048_576,
  maxSubscriptions: undefined,
  users: [],
  pingIntervalMs: 120_000,
  windowBytes: 2 * 1_048_576,
  delayMs: () => 0,
}
const SERVER_ID_CHARS = 56

/**
 * A NATS server as nats-server 2.9.10 behaves towards WebMQ's nodes and the programs beside them.
 *
 * Left out, and refused where it would be asked for: queue groups, TLS, nkeys, accounts, leaf nodes, clusters (but for what
 * the server says of one), mirrors and sources, subject transforms, other retentions than `limits`, redelivery,
 * acknowledgements of consumers, limits per subject, direct gets: no driver uses them. Slow consumers: a link takes any number of bytes.
 */
export class NatsModel implements WireBroker, ModelCore {
  readonly options: NatsModelOptions
  readonly subscribers = new SubjectIndex<ModelSubscriber>()
  readonly #connections = new Set<NatsClientConnection>()
  readonly #jetStream: JetStreamModel | undefined
  #isUp = true
  #runCount = 1
  #clientCount = 0
  #copy: JetStreamSnapshot = []

  constructor(options: Partial<NatsModelOptions> = {}) {
    this.options = { ...DEFAULTS, ...options }
    if (this.options.hasJetStream) {
      this.#jetStream = new JetStreamModel(this)
      this.#jetStream.start()
    }
  }

  get port(): number {
    return this.options.port
  }

  get connections(): ReadonlySet<NatsClientConnection> {
    return this.#connections
  }

  connect(link: WireLink): WireSession {
    if (!this.#isUp) {
      link.end('reset')
      return { receive: () => undefined, closed: () => undefined }
    }
    const left = () => this.#connections.delete(connection)
    const connection = new NatsClientConnection(this, link, this.#info(++this.#clientCount), left)
    this.#connections.add(connection)
    return connection
  }

  kill(lostCount: number): void {
    this.#isUp = false
    for (const connection of [...this.#connections]) connection.end('reset')
    this.#jetStream?.stop(lostCount)
  }

  start(): void {
    if (this.#isUp) return
    this.#isUp = true
    this.#runCount++
    this.#jetStream?.start()
  }

  /** While the rest of the server answers. */
  set jetStream(presence: JetStreamPresence) {
    if (this.#isUp && this.#jetStream !== undefined) this.#jetStream.presence = presence
  }

  /** What a stream is for, as who has made it says; `undefined` without it. */
  descriptionOf(stream: string): string | undefined {
    return this.#jetStream?.configOf(stream)?.description
  }

  /** Its data, as it would be found on a disk. */
  snapshot(): JetStreamSnapshot {
    return this.#jetStream?.snapshot() ?? []
  }

  /** Keeps a copy of its data; replaces an earlier one. */
  keepData(): void {
    this.#copy = this.snapshot()
  }

  /** Dies, and has the data back that {@link keepData} has kept; nothing, if that was never called. */
  restoreData(): void {
    this.kill(0)
    this.restore(this.#copy)
  }

  /** Puts data back, while it is dead. */
  restore(snapshot: JetStreamSnapshot): void {
    if (this.#isUp) throw new Error('it has its data open')
    this.#jetStream?.restore(snapshot)
  }

  publish(message: NatsMessage, from?: Publisher): void {
    const found = this.subscribers.match(message.subject)
    for (const subscriber of found) subscriber.take(message, message.subject)
    if (found.length === 0 && message.reply !== '') from?.tellNoResponders(message.reply)
  }

  /** To the subscribers of another subject than the message's own. */
  deliver(to: string, message: NatsMessage): void {
    for (const subscriber of this.subscribers.match(to)) subscriber.take(message, message.subject)
  }

  hasInterest(subject: string): boolean {
    return this.subscribers.match(subject).length > 0
  }

  #info(clientId: number): object {
    const { port, hasCluster, hasJetStream, maxPayloadBytes, users } = this.options
    const id = `N${this.#runCount
      .toString(36)
      .toUpperCase()
      .padStart(SERVER_ID_CHARS - 1, '0')}`
    return {
      server_id: id,
      server_name: id,
      version: '2.9.10',
      proto: 1,
      host: '127.0.0.1',
      port,
      headers: true,
      ...(users.length === 0 ? {} : { auth_required: true }),
      max_payload: maxPayloadBytes,
      ...(hasJetStream ? { jetstream: true } : {}),
      client_id: clientId,
      client_ip: '127.0.0.1',
      ...(hasCluster ? { cluster: 'model' } : {}),
    }
  }
}
