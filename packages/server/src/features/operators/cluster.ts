import { WebMQError } from 'webmq-client/protocol'
import type { Logger } from '../../kernel/base/logger.js'
import {
  type AddedRevocation,
  MAX_REVOCATIONS,
  type Revocation,
  Revocations,
} from '../../kernel/identity/revocations.js'
import type { NodeMessage, Nodes } from '../nodes/index.js'
import { ConnectionList, type ListedSession, type RowsQuery, rowsOf } from './connection-list.js'
import {
  type DisconnectCode,
  type DisconnectTarget,
  type NodeSummary,
  type OperatorAnswer,
  type OperatorMessage,
  operatorMessageFrom,
} from './operator-message.js'
import { RevocationTable } from './revocation-table.js'

export interface ClusterContext {
  readonly node: string
  readonly nodes: Nodes
  /** Whether this node has anything to tell or to hear: it takes tokens or has an HTTP API for operators. */
  readonly takesPart: boolean
  readonly maxPayloadBytes: number
  readonly summary: () => NodeSummary
  /** Those of this node. */
  readonly sessions: Iterable<ListedSession>
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
  /** Largest distance of another node's clock, in milliseconds; 0 while all are less than 30 s apart. */
  readonly clockApartMs: number
  /** Those that log other keys. */
  readonly otherLogCount: number
  readonly revocationCount: number
  /** Messages of other nodes that could not be read, of too many nodes, and revocations above the limit. */
  readonly droppedCount: number
}

/** Largest message to other nodes, so that control messages do not burden the broker. */
const MAX_MESSAGE_BYTES = 65_536
/** Bytes of a message beside rows of a listing. */
const ENVELOPE_BYTES = 256
const TOPIC = 'operators'
/** Nobody waits longer for nodes that are silent. */
const ANSWER_WAIT_MS = 500
/** Those who ask within this time share one round. */
const SUMMARY_SHARED_MS = 500

/** What operators ask of all nodes at once: to end connections, to revoke tokens, to tell how they are. */
export class Cluster {
  readonly revocations: Revocations
  readonly connections: ConnectionList
  readonly #context: ClusterContext
  readonly #table: RevocationTable
  /** Answers to the questions that wait for them, by round and node. */
  readonly #answers = new Map<number, Map<string, OperatorAnswer>>()
  readonly #maxMessageBytes: number
  #droppedCount = 0
  #roundNumber = 0
  #round: { readonly atMs: number; readonly answers: Promise<ReadonlyMap<string, OperatorAnswer>> } | undefined

  constructor(context: ClusterContext) {
    this.#context = context
    const { nodes, takesPart, maxPayloadBytes, now } = context
    this.revocations = new Revocations(now)
    this.connections = new ConnectionList(context, (query, to) => this.#ask({ kind: 'list', query }, to))
    this.#maxMessageBytes = Math.min(MAX_MESSAGE_BYTES, maxPayloadBytes)
    this.#table = new RevocationTable(nodes, this.revocations, this.#maxMessageBytes, (revocations) =>
      this.#take(revocations),
    )
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

  /** This node and the others, as far as they answer in time, and the names of those that do not. */
  async nodes(): Promise<{ readonly nodes: readonly NodeSummary[]; readonly missing: readonly string[] }> {
    const { nodes, summary } = this.#context
    const nowMs = performance.now()
    if (this.#round === undefined || nowMs - this.#round.atMs >= SUMMARY_SHARED_MS) {
      this.#round = { atMs: nowMs, answers: this.#ask({ kind: 'ask' }) }
    }
    const answers = await this.#round.answers
    const others = nodes.peers().toSorted()
    const summaries = others.flatMap((node) => {
      const answer = answers.get(node)
      return answer?.kind === 'summary' ? [{ ...answer.summary, node }] : []
    })
    return {
      nodes: [summary(), ...summaries],
      missing: others.filter((node) => !answers.has(node)),
    }
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

  /** Asks one node or all. Resolves to the answers that come in time. */
  async #ask(
    question: { readonly kind: 'ask' } | { readonly kind: 'list'; readonly query: RowsQuery },
    to?: string,
  ): Promise<ReadonlyMap<string, OperatorAnswer>> {
    const { nodes } = this.#context
    const round = ++this.#roundNumber
    const answers = new Map<string, OperatorAnswer>()
    this.#answers.set(round, answers)
    // Not waited for: a broker that is silent confirms it much later.
    this.#send({ ...question, round }, to).catch((error: unknown) => nodes.report(error, TOPIC))
    const asked = () => nodes.peers().filter((node) => to === undefined || node === to)
    await nodes.until(() => asked().every((node) => answers.has(node)), ANSWER_WAIT_MS)
    this.#answers.delete(round)
    return answers
  }

  #receive(received: NodeMessage): boolean {
    const { nodes, disconnect, summary, sessions } = this.#context
    const message = operatorMessageFrom(received)
    const answer = (kind: string, round: number, fields: object) =>
      nodes.channel.tell(TOPIC, kind, { round, ...fields }, received.node)
    if (message?.kind === 'disconnect') disconnect(message.target, message.code)
    else if (message?.kind === 'ask') answer('summary', message.round, { summary: summary() })
    else if (message?.kind === 'list') {
      answer('rows', message.round, rowsOf(sessions, message.query, this.#maxMessageBytes - ENVELOPE_BYTES))
    } else if (message !== undefined) this.#answers.get(message.round)?.set(received.node, message)
    return message !== undefined
  }

  async #send({ kind, ...fields }: OperatorMessage, to?: string): Promise<void> {
    if (this.#takesPart) await this.#context.nodes.channel.send(TOPIC, kind, JSON.stringify(fields), to)
  }

  #take(revocations: readonly Revocation[]): void {
    const added = revocations.map((revocation) => this.revocations.add(revocation, true))
    const fullCount = added.filter((result) => result === 'full').length
    this.#droppedCount += fullCount
    if (fullCount > 0) this.#context.logger.error({ count: fullCount }, 'too many revocations of other nodes: not kept')
    if (added.includes('added')) this.#context.revoked()
  }
}
