import { refusalOf, type WebMQError } from 'webmq-client/protocol'
import { copyBytes } from '../base/copy-bytes.js'
import type { Deadline } from '../base/deadlines.js'
import { type Deferred, deferred } from '../base/deferred.js'
import type { MaybePromise } from '../base/maybe-promise.js'
import { DedupeWindow } from '../ports/dedupe-window.js'
import { type Asked, type GroupMessage, type HandOverMessage, slotIdOf } from './group-message.js'
import { type Candidate, pickNode } from './pick-node.js'
import type { QueueGroupStats, QueueGroups } from './queue-groups.js'
import type { Slot } from './slots.js'
import type { TaskMessageOf } from './task-message.js'

interface Pending {
  readonly number: number
  readonly slot: Slot
  readonly message: HandOverMessage
  readonly asked: Asked | undefined
  /** Nodes that had no member for it, or are gone. */
  readonly excluded: Set<string>
  /** The node whose answer it waits for. */
  node: string
  deadline: Deadline | undefined
  readonly outcome: Deferred<string | undefined>
}

/** Memory of a waiting message beside its payload. An estimate. */
const OVERHEAD_BYTES = 512

/**
 * Hands each message of a queue group to one member. The node that publishes picks a node that has members, and waits for
 * its answer. A node without members says so, and another one is picked.
 */
export class HandOvers {
  readonly #groups: QueueGroups
  readonly #pending = new Map<number, Pending>()
  readonly #taken: DedupeWindow
  #pendingBytes = 0
  #lastNumber = 0
  /** Answers of this turn, by node. */
  readonly #answers = new Map<string, { readonly taken: number[]; readonly refused: number[] }>()
  #handedCount = 0
  #missedCount = 0

  constructor(groups: QueueGroups) {
    this.#groups = groups
    this.#taken = new DedupeWindow(groups.context.dedupe)
  }

  stats(): Pick<QueueGroupStats, 'handedCount' | 'missedCount' | 'pendingCount' | 'pendingBytes'> {
    return {
      handedCount: this.#handedCount,
      missedCount: this.#missedCount,
      pendingCount: this.#pending.size,
      pendingBytes: this.#pendingBytes,
    }
  }

  nextNumber(): number {
    return ++this.#lastNumber
  }

  /**
   * Hands a message to one member of the queue group. The payload is copied before it returns, if it has to wait.
   * @returns The node of the member; `undefined`: there is none.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE` (retryable): a member may have got it.
   */
  handOver(slot: Slot, message: HandOverMessage, asked?: Asked): MaybePromise<string | undefined> {
    const { node, maxPendingBytes } = this.#groups.context
    let picked = this.#pick(slot, message, NOBODY)
    const excluded = new Set<string>()
    if (picked === node) {
      if (this.#takeHere(slot, message, node, asked)) return node
      excluded.add(node)
      picked = this.#pick(slot, message, excluded)
    }
    if (picked === undefined) {
      this.#missedCount++
      return undefined
    }
    const byteCount = message.payload.length + OVERHEAD_BYTES
    if (this.#pendingBytes + byteCount > maxPendingBytes) {
      throw refusalOf('E_BROKER_UNAVAILABLE', { detail: 'too many messages wait for members of queue groups' })
    }
    const pending: Pending = {
      number: asked?.number ?? this.nextNumber(),
      slot,
      message: { ...message, payload: copyBytes(message.payload) },
      asked,
      excluded,
      node: picked,
      deadline: undefined,
      outcome: deferred(),
    }
    this.#pending.set(pending.number, pending)
    this.#pendingBytes += byteCount
    this.#send(pending)
    return pending.outcome.promise
  }

  /** A message of another node. Never calls the broker from within this call. */
  receive(message: TaskMessageOf<'task' | 'taken'>, node: string): void {
    if (message.kind === 'task') {
      const { number, name, withinMs } = message
      const slot = this.#groups.slots.byId.get(slotIdOf(name))
      const asked = withinMs === undefined ? undefined : { number, withinMs }
      const isTaken = slot !== undefined && this.#takeHere(slot, message, node, asked)
      this.#answer(node, number, isTaken)
      return
    }
    for (const number of message.taken) this.settled(node, number)
    for (const number of message.refused) {
      const pending = this.#pending.get(number)
      if (pending?.node === node) this.#pickAnother(pending)
    }
  }

  settled(node: string, number: number): void {
    const pending = this.#pending.get(number)
    if (pending?.node === node) this.#end(pending).resolve(node)
  }

  /** A node is gone, or does not answer: what it has not taken goes to others. */
  gone(node: string): void {
    for (const pending of [...this.#pending.values()]) if (pending.node === node) this.#pickAnother(pending)
  }

  stop(error: WebMQError): void {
    // The others would hand over again what they have no answer for.
    this.#sendAnswers()
    for (const pending of [...this.#pending.values()]) this.#end(pending).reject(error)
  }

  #pick(slot: Slot, { messageId }: HandOverMessage, excluded: ReadonlySet<string>): string | undefined {
    const { node } = this.#groups.context
    const candidates: Candidate[] = []
    const own = slot.members.length
    if (own > 0 && !excluded.has(node)) candidates.push({ node, count: own })
    for (const [node, count] of slot.remote) if (!excluded.has(node)) candidates.push({ node, count })
    return pickNode(candidates, messageId)
  }

  /** Hands a message of a node to a member of this node; `false`: there is none that takes it. */
  #takeHere(slot: Slot, message: HandOverMessage, from: string, asked: Asked | undefined): boolean {
    const { now, delivered } = this.#groups.context
    const { messageId } = message
    const id = messageId === undefined ? undefined : `${messageId} ${slot.id}`
    if (id !== undefined && slot.members.length > 0 && this.#taken.has(id, now())) return true
    let isTaken = false
    try {
      const changed = slot.members.length > 0 ? delivered(message) : undefined
      isTaken = changed === undefined ? slot.members.length > 0 : this.#giveTo(slot, changed, from, asked)
    } catch (error) {
      // A bug, or a hook that failed: the message must not go to another member, who would fail too.
      this.#groups.report(error, 'a message of a queue group could not be handed over')
      this.#missedCount++
      isTaken = true
    }
    if (isTaken && id !== undefined) this.#taken.remember(id, undefined, now())
    return isTaken
  }

  #giveTo(slot: Slot, message: GroupMessage, from: string, asked: Asked | undefined): boolean {
    for (let tries = slot.members.length; tries > 0; tries--) {
      const member = slot.nextMember()
      if (member === undefined) return false
      const ticket = asked && this.#groups.requests.ticketFor(member, from, asked)
      if (member.take(slot.name, message, ticket)) {
        this.#handedCount++
        return true
      }
      if (ticket !== undefined) this.#groups.requests.forget(ticket.id)
    }
    return false
  }

  #send(pending: Pending): void {
    const { number, slot, message, asked, node: to } = pending
    const { key, payload, isBinary, messageId } = message
    const withinMs = asked?.withinMs
    const sent = this.#groups.send(
      { kind: 'task', number, name: slot.name, key, isBinary, messageId, withinMs, payload },
      to,
    )
    sent.then(
      () => {
        if (this.#pending.get(number) === pending && pending.node === to) this.#await(pending)
      },
      (error: unknown) => {
        if (this.#pending.get(number) === pending && pending.node === to) this.#end(pending).reject(error)
      },
    )
  }

  #await(pending: Pending): void {
    const { deadlines, context } = this.#groups
    const { nodes, now, answerMs } = context
    const atMs = now() + answerMs
    pending.deadline = deadlines.set(atMs, () => {
      // Late: this process was paused, and the answer may have arrived and not been read.
      const isLate = now() - atMs > answerMs * LATE_SHARE
      // The answer cannot come while this node is cut off.
      if (nodes.isUp && !isLate) this.#groups.suspect(pending.node)
      else this.#await(pending)
    })
  }

  #pickAnother(pending: Pending): void {
    const { slot, message, excluded, asked, deadline } = pending
    if (deadline !== undefined) this.#groups.deadlines.clear(deadline)
    pending.deadline = undefined
    excluded.add(pending.node)
    const own = this.#groups.context.node
    const picked = this.#pick(slot, message, excluded)
    if (picked === undefined) {
      this.#missedCount++
      this.#end(pending).resolve(undefined)
    } else if (picked !== own) {
      pending.node = picked
      // Later: the sink of a broker must not call it.
      setImmediate(() => {
        if (this.#pending.get(pending.number) === pending && pending.node === picked) this.#send(pending)
      })
    } else if (this.#takeHere(slot, message, own, asked)) this.#end(pending).resolve(own)
    else {
      pending.node = own
      this.#pickAnother(pending)
    }
  }

  #end(pending: Pending): Deferred<string | undefined> {
    if (pending.deadline !== undefined) this.#groups.deadlines.clear(pending.deadline)
    if (this.#pending.delete(pending.number)) this.#pendingBytes -= pending.message.payload.length + OVERHEAD_BYTES
    return pending.outcome
  }

  #answer(to: string, number: number, isTaken: boolean): void {
    if (this.#answers.size === 0) setImmediate(() => this.#sendAnswers())
    const answers = this.#answers.get(to) ?? { taken: [], refused: [] }
    this.#answers.set(to, answers)
    ;(isTaken ? answers.taken : answers.refused).push(number)
  }

  #sendAnswers(): void {
    const answers = [...this.#answers]
    this.#answers.clear()
    for (const [to, { taken, refused }] of answers) {
      for (let start = 0; start < Math.max(taken.length, refused.length); start += MAX_ANSWERS) {
        const [some, others] = [taken, refused].map((all) => all.slice(start, start + MAX_ANSWERS))
        this.#groups
          .send({ kind: 'taken', taken: some ?? [], refused: others ?? [] }, to)
          .catch((error: unknown) => this.#groups.report(error, 'a hand-over could not be confirmed'))
      }
    }
  }
}

const NOBODY: ReadonlySet<string> = new Set()
/** A deadline that is late by more than this share of its time says nothing about the other node. */
const LATE_SHARE = 1 / 4
const MAX_ANSWERS = 1_000
