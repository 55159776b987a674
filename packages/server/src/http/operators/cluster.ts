import { WebMQError } from 'webmq-client/protocol'
import type { Logger } from '../../base/logger.js'
import { type AddedRevocation, MAX_REVOCATIONS, type Revocation, Revocations } from '../../identity/revocations.js'
import type { NodeMessage, Nodes } from '../../nodes/index.js'
import {
  type DisconnectCode,
  type DisconnectTarget,
  type NodeSummary,
  type OperatorMessage,
  operatorMessageFrom,
  type UserConnections,
} from './operator-message.js'
import { RevocationTable } from './revocation-table.js'

export interface ClusterContext {
  readonly nodes: Nodes
  /** Whether this node has anything to tell or to hear: it takes tokens or has an HTTP API for operators. */
  readonly takesPart: boolean
  readonly maxPayloadBytes: number
  readonly summary: () => NodeSummary
  readonly find: (user: string) => UserConnections
  /** Ends connections of this node, and returns their number. */
  readonly disconnect: (target: DisconnectTarget, code: DisconnectCode) => number
  /** Revocations were added: ends the connections of this node whose tokens they cover. */
  readonly revoked: () => void
  readonly logger: Pick<Logger, 'info' | 'error'>
  /** Unix time in milliseconds. */
  readonly now?: () => number
}

/** Counters since the start; gauges at the time of the call. */
export interface ClusterStats {
  readonly peerCount: number
  /** Those with other options, or of another version. */
  readonly differentCount: number
  /** Those that log other keys. */
  readonly otherLogCount: number
  readonly revocationCount: number
  /** Messages of other nodes that could not be read, of too many nodes, and revocations above the limit. */
  readonly droppedCount: number
}

interface UserPlaces {
  readonly own: UserConnections
  /** The other nodes at which the user is connected. */
  readonly others: ReadonlyMap<string, UserConnections>
  /** Other nodes that did not answer in time, or are of a version that cannot. */
  readonly silentCount: number
}

/** Largest message to other nodes, so that control messages do not burden the broker. */
const MAX_MESSAGE_BYTES = 65_536
const TOPIC = 'operators'
/** The answer to a list of nodes waits no longer for those that are silent. */
const SUMMARY_WAIT_MS = 500
/** Those who ask within this time share one round. */
const SUMMARY_SHARED_MS = 500

/** What operators ask of all nodes at once: to end connections, to revoke tokens, to tell how they are. */
export class Cluster {
  readonly revocations: Revocations
  readonly #context: ClusterContext
  readonly #table: RevocationTable
  /** The last one of each node. */
  readonly #summaries = new Map<string, NodeSummary>()
  /** Answers to the questions that wait for them, by round and node. */
  readonly #answers = new Map<number, Map<string, UserConnections | undefined>>()
  #droppedCount = 0
  #roundNumber = 0
  #round: { readonly atMs: number; readonly answers: Promise<readonly NodeSummary[]> } | undefined

  constructor(context: ClusterContext) {
    this.#context = context
    const { nodes, takesPart, maxPayloadBytes, now } = context
    this.revocations = new Revocations(now)
    const maxMessageBytes = Math.min(MAX_MESSAGE_BYTES, maxPayloadBytes)
    this.#table = new RevocationTable(nodes, this.revocations, maxMessageBytes, (revocations) =>
      this.#take(revocations),
    )
    nodes.onGone((node) => this.#summaries.delete(node))
    if (!takesPart || !nodes.hasOthers) return
    nodes.handle(TOPIC, (message) => this.#receive(message))
    void nodes.openTopic(TOPIC)
    void nodes.openTable(this.#table)
  }

  /**
   * Ends connections on all nodes.
   * @returns The number of those on this node.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE`: the connections of this node have ended, others may not.
   */
  async disconnect(target: DisconnectTarget, code: DisconnectCode): Promise<number> {
    const { disconnect, logger } = this.#context
    const count = disconnect(target, code)
    logger.info({ by: target.by, value: target.value, code, count }, 'an operator ended connections')
    await this.#send({ kind: 'disconnect', target, code })
    return count
  }

  /**
   * Revokes tokens on all nodes. Their connections end within moments.
   * @throws {WebMQError} `E_RATE_LIMIT` when this node holds as many revocations as it may; `E_BROKER_UNAVAILABLE`:
   *   this node has revoked the tokens, the others learn it when the broker is back.
   */
  async revoke(revocation: Revocation): Promise<AddedRevocation> {
    const { revoked, logger } = this.#context
    const added = this.revocations.add(revocation)
    if (added === 'full') {
      const detail = `${MAX_REVOCATIONS} revocations are kept until their tokens have expired`
      throw new WebMQError('E_RATE_LIMIT', { detail })
    }
    if (added === 'over') return added
    logger.info({ by: revocation.by, value: revocation.value, until: revocation.until }, 'an operator revoked tokens')
    if (added === 'added') revoked()
    // Also when it is known here: a caller that repeats an unanswered request wants the others to know.
    if (this.#takesPart) await this.#table.tell(revocation)
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

  /** The connections of a user at all nodes. Every call asks anew. */
  async find(user: string): Promise<UserPlaces> {
    const { nodes, find } = this.#context
    const others = new Map<string, UserConnections>()
    if (!this.#takesPart) return { own: find(user), others, silentCount: 0 }
    const answers = await this.#ask(user)
    for (const [node, found] of answers) if ((found?.connections ?? 0) > 0) others.set(node, found as UserConnections)
    const silentCount = nodes.peers().filter((node) => answers.get(node) === undefined).length
    return { own: find(user), others, silentCount }
  }

  stats(): ClusterStats {
    const { droppedCount, ...peers } = this.#context.nodes.stats()
    return {
      ...peers,
      revocationCount: this.revocations.size,
      droppedCount: this.#droppedCount + droppedCount,
    }
  }

  get #takesPart(): boolean {
    return this.#context.takesPart && this.#context.nodes.hasOthers
  }

  async #askAll(): Promise<readonly NodeSummary[]> {
    if (this.#takesPart) await this.#ask()
    return [...this.#summaries.values()]
  }

  /** Asks all nodes. Resolves to the answers that come in time: what each found of the user. */
  async #ask(user?: string): Promise<ReadonlyMap<string, UserConnections | undefined>> {
    const { nodes } = this.#context
    const round = ++this.#roundNumber
    const answers = new Map<string, UserConnections | undefined>()
    this.#answers.set(round, answers)
    await this.#send({ kind: 'ask', round, user }).catch((error: unknown) => nodes.report(error, TOPIC))
    await nodes.until(() => nodes.peers().every((node) => answers.has(node)), SUMMARY_WAIT_MS)
    this.#answers.delete(round)
    return answers
  }

  #receive(received: NodeMessage): boolean {
    const { nodes, disconnect, summary, find } = this.#context
    const message = operatorMessageFrom(received)
    if (message?.kind === 'disconnect') disconnect(message.target, message.code)
    else if (message?.kind === 'ask') {
      const { round, user } = message
      const found = user === undefined ? {} : { found: find(user) }
      nodes.channel.tell(TOPIC, 'summary', { round, summary: summary(), ...found }, received.node)
    } else if (message !== undefined && message.round <= this.#roundNumber) {
      this.#summaries.set(received.node, message.summary)
      this.#answers.get(message.round)?.set(received.node, message.found)
    }
    return message !== undefined
  }

  async #send({ kind, ...fields }: OperatorMessage): Promise<void> {
    if (this.#takesPart) await this.#context.nodes.channel.send(TOPIC, kind, JSON.stringify(fields))
  }

  #take(revocations: readonly Revocation[]): void {
    const added = revocations.map((revocation) => this.revocations.add(revocation, true))
    const fullCount = added.filter((result) => result === 'full').length
    this.#droppedCount += fullCount
    if (fullCount > 0) this.#context.logger.error({ count: fullCount }, 'too many revocations of other nodes: not kept')
    if (added.includes('added')) this.#context.revoked()
  }
}
