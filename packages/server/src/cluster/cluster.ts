import { WebMQError } from 'webmq-client/protocol'
import type { Logger } from '../logger.js'
import type { Broker, BrokerStatus, InboundMessage } from '../ports/broker.js'
import { ControlChannel } from './control-channel.js'
import type { ControlMessage, DisconnectCode, DisconnectTarget, NodeSummary } from './control-message.js'
import { Peers } from './peers.js'
import type { Revocation } from './revocation.js'
import { RevocationSync } from './revocation-sync.js'
import { type AddedRevocation, MAX_REVOCATIONS, Revocations } from './revocations.js'

/** What a {@link Cluster} works with. */
export interface ClusterContext {
  /** Name of this node, new with every start: 1 to 36 characters of `[A-Za-z0-9_-]`. */
  readonly node: string
  readonly broker: Pick<Broker, 'capabilities' | 'bind' | 'publish'>
  /** Whether this node has anything to tell or to hear: it takes tokens or has an HTTP API for operators. */
  readonly takesPart: boolean
  /** Largest message that other nodes accept. */
  readonly maxPayloadBytes: number
  /** What this node tells of itself. */
  readonly summary: () => NodeSummary
  /** Ends connections of this node, and returns their number. */
  readonly disconnect: (target: DisconnectTarget, code: DisconnectCode) => number
  /** Revocations were added: ends the connections of this node whose tokens they cover. */
  readonly revoked: () => void
  readonly logger: Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>
  /** Unix time in milliseconds. */
  readonly now?: () => number
}

/** Counters since the start; gauges at the time of the call. */
export interface ClusterStats {
  /** Other nodes that this node has heard of. */
  readonly peerCount: number
  readonly revocationCount: number
  /** Messages of other nodes that could not be read, of too many nodes, and revocations above the limit. */
  readonly droppedCount: number
}

/** Largest message to other nodes, so that control messages do not burden the broker. */
const MAX_MESSAGE_BYTES = 65_536
/** The answer to a list of nodes waits no longer for those that are silent. */
const SUMMARY_WAIT_MS = 500
/** Those who ask within this time share one round. */
const SUMMARY_SHARED_MS = 500

/** What operators ask of all nodes at once: to end connections, to revoke tokens, to tell how they are. */
export class Cluster {
  readonly revocations: Revocations
  readonly #context: ClusterContext
  readonly #channel: ControlChannel
  readonly #sync: RevocationSync
  readonly #peers = new Peers()
  #droppedCount = 0
  #round: { readonly atMs: number; readonly answers: Promise<readonly NodeSummary[]> } | undefined

  constructor(context: ClusterContext) {
    this.#context = context
    const { node, broker, maxPayloadBytes, logger, now } = context
    const onError = (err: unknown, text: string) => logger.warn({ err }, text)
    this.revocations = new Revocations(now)
    this.#channel = new ControlChannel({
      node,
      broker,
      onMessage: (message) => this.#handle(message),
      onOpen: () => this.#channel.tell({ kind: 'hello', node, ...this.revocations.digest() }),
      onError,
    })
    this.#sync = new RevocationSync({
      node,
      revocations: this.revocations,
      channel: this.#channel,
      maxMessageBytes: Math.min(MAX_MESSAGE_BYTES, maxPayloadBytes),
      onError,
    })
  }

  /** Begins to take part, once the broker has started. */
  begin(): void {
    if (this.#context.takesPart && this.#context.broker.capabilities.manyNodes) this.#channel.open()
  }

  status(status: BrokerStatus): void {
    this.#channel.status(status)
  }

  /** Messages of other nodes may be missing. */
  gap(): void {
    this.#channel.gap()
  }

  /** Takes a message on a reserved key; returns whether it is one of these. Never calls the broker from within this call. */
  receive(message: Pick<InboundMessage, 'key' | 'payload'>): boolean {
    return this.#channel.receive(message)
  }

  /**
   * Ends connections on all nodes.
   * @returns The number of those on this node.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE`: the connections of this node have ended, others may not.
   */
  async disconnect(target: DisconnectTarget, code: DisconnectCode): Promise<number> {
    const { node, disconnect, logger } = this.#context
    const count = disconnect(target, code)
    logger.info({ by: target.by, value: target.value, code, count }, 'an operator ended connections')
    await this.#channel.send({ kind: 'disconnect', node, target, code })
    return count
  }

  /**
   * Revokes tokens on all nodes. Their connections end within moments.
   * @throws {WebMQError} `E_RATE_LIMIT` when this node holds as many revocations as it may; `E_BROKER_UNAVAILABLE`:
   *   this node has revoked the tokens, the others learn it when the broker is back.
   */
  async revoke(revocation: Revocation): Promise<AddedRevocation> {
    const { node, revoked, logger } = this.#context
    const added = this.revocations.add(revocation)
    if (added === 'full') {
      const detail = `${MAX_REVOCATIONS} revocations are kept until their tokens have expired`
      throw new WebMQError('E_RATE_LIMIT', { detail })
    }
    if (added === 'over') return added
    logger.info({ by: revocation.by, value: revocation.value, until: revocation.until }, 'an operator revoked tokens')
    if (added === 'added') revoked()
    // Also when it is known here: a caller that repeats an unanswered request wants the others to know.
    await this.#channel.send({ kind: 'revoke', node, revocations: [revocation], isLast: false })
    return added
  }

  /** This node and the others, as far as they answer in time. */
  async nodes(): Promise<readonly NodeSummary[]> {
    const nowMs = performance.now()
    if (this.#round === undefined || nowMs - this.#round.atMs >= SUMMARY_SHARED_MS) {
      this.#round = { atMs: nowMs, answers: this.#askAll() }
    }
    const others = await this.#round.answers
    return [this.#context.summary(), ...others]
  }

  stats(): ClusterStats {
    return {
      peerCount: this.#peers.size,
      revocationCount: this.revocations.size,
      droppedCount: this.#droppedCount + this.#channel.malformedCount + this.#peers.ignoredCount,
    }
  }

  /** The node stops. */
  stop(): void {
    this.#channel.tell({ kind: 'bye', node: this.#context.node })
    this.#channel.close()
    this.#sync.stop()
  }

  async #askAll(): Promise<readonly NodeSummary[]> {
    const round = this.#peers.nextRound()
    this.#channel.tell({ kind: 'ask', node: this.#context.node, round })
    await this.#peers.whenAnswered(SUMMARY_WAIT_MS)
    return this.#peers.summaries()
  }

  #handle(message: ControlMessage): void {
    const { node: sender } = message
    if (message.kind === 'bye') {
      this.#peers.left(sender)
      return
    }
    this.#peers.seen(sender)
    const { node, disconnect, summary } = this.#context
    switch (message.kind) {
      case 'hello':
        this.#answer({ kind: 'here', node, ...this.revocations.digest() }, sender)
        this.#sync.compare(sender, message)
        break
      case 'here':
        this.#sync.compare(sender, message)
        break
      case 'want':
        this.#sync.serve(sender)
        break
      case 'revoke':
        this.#take(message.revocations)
        this.#sync.received(sender, message.isLast)
        break
      case 'disconnect':
        disconnect(message.target, message.code)
        break
      case 'ask':
        this.#answer({ kind: 'summary', node, round: message.round, summary: summary() }, sender)
        break
      case 'summary':
        this.#peers.answered(sender, message.round, message.summary)
        break
    }
  }

  #take(revocations: readonly Revocation[]): void {
    const added = revocations.map((revocation) => this.revocations.add(revocation, true))
    const fullCount = added.filter((result) => result === 'full').length
    this.#droppedCount += fullCount
    if (fullCount > 0) this.#context.logger.error({ count: fullCount }, 'too many revocations of other nodes: not kept')
    if (added.includes('added')) this.#context.revoked()
  }

  /** Later: the sink of a broker must not call it. */
  #answer(message: ControlMessage, to: string): void {
    setImmediate(() => this.#channel.tell(message, to))
  }
}
