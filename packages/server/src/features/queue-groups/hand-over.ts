import { refusalOf, WebMQError } from 'webmq-client/protocol'
import { copyBytes } from '../../kernel/base/copy-bytes.js'
import { type Deferred, deferred } from '../../kernel/base/deferred.js'
import type { MaybePromise } from '../../kernel/base/maybe-promise.js'
import type { Asked, HandOverMessage } from './group-message.js'
import type { QueueGroup } from './known-groups.js'
import type { PendingHandOver as Pending } from './pending-hand-over.js'
import { type Candidate, pickNode } from './pick-node.js'
import type { QueueGroupStats, QueueGroups } from './queue-groups.js'
import { LOST } from './requests.js'
import type { TaskMessageOf } from './task-message.js'

/** Memory of a waiting message beside its payload. An estimate. */
const OVERHEAD_BYTES = 512
const MAX_PENDING = 65_536
/** Messages sent again in one turn to a node that is heard again. */
const MAX_AGAIN = 256

/**
 * Hands each message of a queue group to one member. The node that publishes picks a node that has members, and waits for
 * its answer. A node without members says so, and another one is picked.
 *
 * That a node does not answer says nothing about its members. A message then goes to another node; a request does not, for
 * it must not be handled twice. Without another node both wait until the node is heard, and get it again, or until it is
 * gone. No member is left only when no node has one, or those that had are gone.
 */
export class HandOvers {
  readonly #groups: QueueGroups
  readonly #pending = new Map<number, Pending>()
  #heldCount = 0
  #pendingBytes = 0
  #lastNumber = 0
  #missedCount = 0
  #failedCount = 0

  constructor(groups: QueueGroups) {
    this.#groups = groups
  }

  stats(): Pick<QueueGroupStats, 'missedCount' | 'failedCount' | 'pendingCount' | 'pendingBytes' | 'waitingCount'> {
    let waitingCount = 0
    if (this.#groups.silentCount > 0) for (const { isWaiting } of this.#pending.values()) if (isWaiting) waitingCount++
    return {
      missedCount: this.#missedCount,
      failedCount: this.#failedCount,
      pendingCount: this.#pending.size + this.#heldCount,
      pendingBytes: this.#pendingBytes,
      waitingCount,
    }
  }

  nextNumber(): number {
    return ++this.#lastNumber
  }

  /**
   * Hands a message to one member of the queue group. The payload is copied before it returns, if it has to wait.
   * @returns The node of the member; `undefined`: there is none.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE` (retryable): a member may have got it. `E_RESPONSE`: the only responder is
   *   gone, and may have got it.
   */
  handOver(group: QueueGroup, message: HandOverMessage, asked?: Asked): MaybePromise<string | undefined> {
    const { node, waitMs } = this.#groups.context
    let picked = this.#pick(group, message, NOBODY)
    const excluded = new Set<string>()
    let isFull = false
    if (picked === node) {
      const answer = this.#groups.ownMembers.take(group, message, node, asked)
      if (answer === 'taken') return node
      isFull = answer === 'full'
      excluded.add(node)
      picked = this.#pick(group, message, excluded)
    }
    if (picked === undefined) {
      if (isFull) throw this.#failure(FULL)
      this.#missedCount++
      return undefined
    }
    const byteCount = this.#assertRoom(message)
    const pending: Pending = {
      number: asked?.number ?? this.nextNumber(),
      group,
      message: { ...message, payload: copyBytes(message.payload) },
      asked,
      untilMs: this.#groups.deadlines.now() + (asked?.withinMs ?? waitMs),
      excluded,
      sentTo: new Set(),
      node: picked,
      term: undefined,
      isWaiting: false,
      isLast: false,
      isFull,
      deadline: undefined,
      outcome: deferred(),
    }
    this.#pending.set(pending.number, pending)
    this.#pendingBytes += byteCount
    if (this.#groups.isSilent(picked)) this.#wait(pending)
    else this.#send(pending)
    return pending.outcome.promise
  }

  /**
   * Waits until the queue groups of the other nodes are known: this node has just started, and its broker does not answer.
   * @param go Gets the message with a copy of its payload.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE` (retryable)
   */
  async hold<Message extends HandOverMessage, Result>(
    message: Message,
    go: (held: Message) => MaybePromise<Result>,
  ): Promise<Result> {
    const byteCount = this.#assertRoom(message)
    const held = { ...message, payload: copyBytes(message.payload) }
    this.#heldCount++
    this.#pendingBytes += byteCount
    const { nodes, waitMs } = this.#groups.context
    await nodes.until(() => this.#groups.isKnown, waitMs)
    this.#heldCount--
    this.#pendingBytes -= byteCount
    if (!this.#groups.isKnown) throw this.#failure('the other nodes are not known yet')
    return await go(held)
  }

  /** Answers of another node. Never calls the broker from within this call. */
  receive({ taken, refused, full = [], late = [], term }: TaskMessageOf<'taken'>, node: string): void {
    for (const number of taken) this.settled(node, number)
    const isFull = new Set(full)
    for (const number of refused) {
      const pending = this.#pending.get(number)
      if (pending?.sentTo.delete(node) !== true) continue
      if (isFull.has(number)) pending.isFull = true
      pending.excluded.add(node)
      if (pending.node === node) this.#place(pending)
    }
    if (late.length === 0 || term === undefined) return
    this.#groups.context.nodes.heardTerm(node, term)
    for (const number of late) {
      const pending = this.#pending.get(number)
      if (pending?.node === node && pending.term !== undefined && pending.term < term) this.#wait(pending)
    }
    this.#sendLater(node)
  }

  settled(node: string, number: number): void {
    const pending = this.#pending.get(number)
    if (pending?.sentTo.has(node) === true) this.#end(pending).resolve(node)
  }

  /** A node does not answer. A request stays with it: it may have been handed over. */
  silent(node: string): void {
    for (const pending of [...this.#pending.values()]) {
      if (pending.node !== node || pending.isWaiting) continue
      if (pending.asked === undefined) this.#place(pending)
      else this.#wait(pending)
    }
  }

  /** A node that did not answer has been heard. */
  heard(node: string): void {
    if (this.#pending.size === 0) return
    for (const pending of [...this.#pending.values()]) {
      const hasMembers = this.#groups.known.byId.get(pending.group.id)?.remote.has(node) === true
      if (pending.node !== node && hasMembers) this.#placeIfFree(pending)
    }
    this.#sendLater(node)
  }

  /** A node has members of the queue group now. */
  joined(group: QueueGroup, node: string): void {
    if (this.#pending.size === 0) return
    for (const pending of [...this.#pending.values()]) {
      if (pending.group.id !== group.id) continue
      pending.excluded.delete(node)
      if (!this.#groups.isSilent(node)) this.#placeIfFree(pending)
    }
  }

  /** A node is gone: what it has not taken goes to others. @param hasLeft It has answered all that it has taken. */
  gone(node: string, hasLeft: boolean): void {
    for (const pending of [...this.#pending.values()]) {
      if (hasLeft) pending.sentTo.delete(node)
      if (pending.node === node) this.#place(pending)
    }
  }

  /** Nobody waits for this request any more. */
  cancel(number: number): void {
    const pending = this.#pending.get(number)
    if (pending !== undefined) this.#end(pending).reject(refusalOf('E_DISCONNECTED'))
  }

  stop(error: WebMQError): void {
    for (const pending of [...this.#pending.values()]) this.#end(pending).reject(error)
  }

  /** @returns The memory of the message while it waits. */
  #assertRoom({ payload }: HandOverMessage): number {
    const byteCount = payload.length + OVERHEAD_BYTES
    const isFull = this.#pending.size + this.#heldCount >= MAX_PENDING
    if (isFull || this.#pendingBytes + byteCount > this.#groups.context.maxPendingBytes) {
      throw this.#failure('too many messages wait for members of queue groups')
    }
    return byteCount
  }

  #pick(group: QueueGroup, { messageId }: HandOverMessage, excluded: ReadonlySet<string>): string | undefined {
    const candidates = group.candidates(this.#groups.context.node, excluded)
    if (this.#groups.silentCount === 0) return pickNode(candidates, messageId)
    // The members of a node that does not answer at present are there until it is gone.
    const isHeard = ({ node }: Candidate) => !this.#groups.isSilent(node)
    return pickNode(candidates.filter(isHeard), messageId) ?? pickNode(candidates, messageId)
  }

  #send(pending: Pending): void {
    const { number, group, message, asked, node: to, sentTo, untilMs } = pending
    const { nodes } = this.#groups.context
    const { key, payload, isBinary, messageId } = message
    // The broker ends the first try of a message in its own time, which is the same.
    if (sentTo.size > 0 || asked !== undefined) this.#setDeadline(pending, untilMs, () => this.#fail(pending))
    const withinMs = asked && Math.max(1, Math.ceil(untilMs - this.#groups.deadlines.now()))
    const term = nodes.termOf(to)
    pending.isWaiting = false
    pending.term = term
    sentTo.add(to)
    const task = { kind: 'task', number, name: group.name, key, isBinary, messageId, withinMs, term, payload } as const
    const isCurrent = () => this.#pending.get(number) === pending && pending.node === to && !pending.isWaiting
    this.#groups.send(task, to).then(
      () => {
        if (isCurrent()) this.#await(pending)
      },
      (error: unknown) => {
        if (!isCurrent()) return
        this.#failedCount++
        this.#end(pending).reject(error)
      },
    )
  }

  #await(pending: Pending): void {
    const { context, deadlines } = this.#groups
    const { nodes, answerMs } = context
    const leftMs = pending.untilMs - deadlines.now()
    this.#setDeadline(
      pending,
      deadlines.now() + (leftMs > 0 ? Math.min(answerMs, leftMs) : answerMs * LAST_SHARE),
      () => {
        if (deadlines.now() >= pending.untilMs) this.#fail(pending)
        // The answer cannot come while this node is cut off.
        else if (nodes.isUp) this.#groups.suspect(pending.node)
        else this.#await(pending)
      },
    )
  }

  /** Waits until its node is heard or gone, or its time is over. */
  #wait(pending: Pending): void {
    pending.isWaiting = true
    this.#setDeadline(pending, pending.untilMs, () => this.#fail(pending))
  }

  /** Sends what waits for the node, later: the sink of a broker must not call it. */
  #sendLater(node: string): void {
    setImmediate(() => {
      let count = 0
      for (const pending of [...this.#pending.values()]) {
        if (!pending.isWaiting || pending.node !== node || this.#mayComeTwice(pending)) continue
        if (this.#groups.isSilent(node)) return
        if (++count > MAX_AGAIN) return this.#sendLater(node)
        this.#send(pending)
      }
    })
  }

  /** A node of an older version does not know that it was sent a message without an id, or a request, before. */
  #mayComeTwice({ node, sentTo, message }: Pending): boolean {
    const isKnown = message.messageId !== undefined || this.#groups.context.nodes.termOf(node) !== undefined
    return !isKnown && sentTo.has(node)
  }

  /** A node is there that was not before. A request that was sent already stays where it is. */
  #placeIfFree(pending: Pending): void {
    if (pending.isWaiting && (pending.asked === undefined || pending.sentTo.size === 0)) this.#place(pending)
  }

  /** Goes to a node that may have a member for it, or ends. */
  #place(pending: Pending): void {
    const { group, message, excluded, asked, node: former } = pending
    const { ownMembers, known, context } = this.#groups
    this.#setDeadline(pending)
    pending.isWaiting = false
    const current = known.byId.get(group.id) ?? group
    let picked = this.#pick(current, message, excluded)
    if (picked === context.node) {
      const answer = ownMembers.take(current, message, picked, asked)
      if (answer === 'taken') {
        this.#end(pending).resolve(picked)
        return
      }
      pending.isFull ||= answer === 'full'
      excluded.add(picked)
      picked = this.#pick(current, message, excluded)
    }
    if (picked === undefined) this.#nobody(pending)
    else if (this.#groups.isSilent(picked)) {
      // The one that was sent it already knows it, if it has it.
      const mayStay = former !== context.node && !excluded.has(former) && current.remote.has(former)
      pending.node = mayStay ? former : picked
      this.#wait(pending)
    } else {
      const to = picked
      pending.node = to
      // Later: the sink of a broker must not call it.
      setImmediate(() => {
        if (this.#pending.get(pending.number) === pending && pending.node === to) this.#send(pending)
      })
    }
  }

  #nobody(pending: Pending): void {
    const { asked, sentTo, isFull, isLast } = pending
    if (!isLast && !this.#groups.isCurrent) {
      // Members may have moved while this node was cut off. It hears of them, and places what waits for them.
      pending.isLast = true
      pending.node = NO_NODE
      this.#wait(pending)
      void this.#groups.whenCurrent().then(() => {
        if (this.#pending.get(pending.number) === pending && pending.isWaiting) this.#place(pending)
      })
      return
    }
    const { resolve, reject } = this.#end(pending)
    if (isFull) reject(this.#failure(FULL))
    else if (asked !== undefined && sentTo.size > 0) reject(new WebMQError('E_RESPONSE', { message: LOST }))
    else {
      this.#missedCount++
      resolve(undefined)
    }
  }

  #fail(pending: Pending): void {
    this.#end(pending).reject(this.#failure('the node of a member does not answer'))
  }

  #failure(detail: string): WebMQError {
    this.#failedCount++
    return refusalOf('E_BROKER_UNAVAILABLE', { detail })
  }

  #setDeadline(pending: Pending, atMs?: number, fire: () => void = () => undefined): void {
    const { deadlines } = this.#groups
    if (pending.deadline !== undefined) deadlines.clear(pending.deadline)
    pending.deadline = atMs === undefined ? undefined : deadlines.set(atMs, fire)
  }

  #end(pending: Pending): Deferred<string | undefined> {
    this.#setDeadline(pending)
    if (this.#pending.delete(pending.number)) this.#pendingBytes -= pending.message.payload.length + OVERHEAD_BYTES
    return pending.outcome
  }
}

const NOBODY: ReadonlySet<string> = new Set()
const NO_NODE = ''
const FULL = 'the members of a queue group take no more'
/** A message whose time is over has this share of the time of an answer for one that is under way. */
const LAST_SHARE = 1 / 4
