import { randomBytes } from 'node:crypto'
import { refusalOf } from 'webmq-client/protocol'
import { copyBytes } from '../../kernel/base/copy-bytes.js'
import type { Deadline } from '../../kernel/base/deadlines.js'
import { type Deferred, deferred } from '../../kernel/base/deferred.js'
import { andThen, catching, type MaybePromise } from '../../kernel/base/maybe-promise.js'
import { clientNameOf, isTrusted } from '../../kernel/identity/actor.js'
import type { Author } from '../../kernel/publishing/author.js'
import type { Reply, TakenRequest } from '../../kernel/publishing/requests.js'
import type { Asked, GroupMember, GroupMessage, RequestTicket } from './group-message.js'
import type { QueueGroup } from './known-groups.js'
import type { QueueGroups } from './queue-groups.js'
import { hasRoom, shareOf } from './shares.js'
import type { TaskMessageOf } from './task-message.js'

/** Most requests of this node without a reply, and most that this node has to reply to. */
const MAX_REQUESTS = 65_536
const RUN_BYTES = 6

interface Waiting {
  readonly asker: Author
  /** Under which name it is counted. */
  readonly client: string | undefined
  readonly reply: Deferred<Reply>
  readonly deadline: Deadline
  /** The responder's node, once a responder has the request. */
  node: string | undefined
}

interface Served {
  /** The asking node, and its number of the request. */
  readonly node: string
  readonly number: number
  readonly member: GroupMember
  readonly deadline: Deadline
}

/** Requests to one responder each, and their replies, between nodes. */
export class GroupRequests {
  readonly #groups: QueueGroups
  readonly #waiting = new Map<number, Waiting>()
  readonly #served = new Map<string, Served>()
  readonly #byMember = new Map<GroupMember, Set<string>>()
  /** Those of {@link #waiting} and {@link #served} by the clients that have asked, or have to reply. */
  readonly #waitingOf = new Map<string, Set<number>>()
  readonly #servedOf = new Map<string, Set<string>>()
  /** Begins the names of requests: a reply that comes by another connection, of a request of another node, is none here. */
  readonly #run = randomBytes(RUN_BYTES).toString('base64url')
  #lastTicket = 0

  constructor(groups: QueueGroups) {
    this.#groups = groups
  }

  get waitingCount(): number {
    return this.#waiting.size
  }

  get servedCount(): number {
    return this.#served.size
  }

  countOf(member: GroupMember): number {
    return sizeOf(this.#byMember, member)
  }

  /** See {@link Responders.ask}. */
  ask(message: GroupMessage, withinMs: number, asker: Author): MaybePromise<TakenRequest> {
    this.#groups.assertSupported()
    const { known, handOvers, deadlines } = this.#groups
    if (!this.#groups.isKnown) return handOvers.hold(message, (held) => this.ask(held, withinMs, asker))
    const group = mostSpecific(known.match('respond', message.key))
    if (group === undefined) throw refusalOf('E_NO_RESPONDERS', { detail: message.key })
    if (asker.isClosed) throw refusalOf('E_DISCONNECTED')
    const client = isTrusted(asker) ? undefined : clientNameOf(asker)
    if (!hasRoom(MAX_REQUESTS, client, sizeOf(this.#waitingOf, client), this.#waiting.size)) {
      const detail = `at most ${MAX_REQUESTS} requests of a server may wait; ${shareOf(MAX_REQUESTS)} of one user or address`
      throw refusalOf('E_RATE_LIMIT', { detail })
    }
    const asked: Asked = { number: handOvers.nextNumber(), withinMs }
    const { number } = asked
    const reply = deferred<Reply>()
    const deadline = deadlines.set(deadlines.now() + withinMs, () =>
      this.#fail(number, 'E_TIMEOUT', 'no reply in time'),
    )
    const waiting: Waiting = { asker, client, reply, deadline, node: undefined }
    this.#waiting.set(number, waiting)
    addTo(this.#waitingOf, client, number)
    const taken = (node: string | undefined): TakenRequest => {
      if (node === undefined) throw refusalOf('E_NO_RESPONDERS', { detail: message.key })
      waiting.node = node
      return { reply: reply.promise }
    }
    return catching(
      () => andThen(handOvers.handOver(group, message, asked), taken),
      (error) => {
        this.#end(number)
        throw error
      },
    )
  }

  /** Notes that a member of this node has to reply; `undefined` when its client, or this node, has too many of them. */
  ticketFor(member: GroupMember, node: string, { number, withinMs }: Asked): RequestTicket | undefined {
    const { deadlines } = this.#groups
    const { client } = member
    if (!hasRoom(MAX_REQUESTS, client, sizeOf(this.#servedOf, client), this.#served.size)) return undefined
    const id = `${this.#run}${++this.#lastTicket}`
    const deadline = deadlines.set(deadlines.now() + withinMs, () => this.forget(id))
    this.#served.set(id, { node, number, member, deadline })
    addTo(this.#servedOf, client, id)
    addTo(this.#byMember, member, id)
    return { id, withinMs }
  }

  /**
   * Sends a reply to the requester. MUST NOT be called from the sink of the broker.
   * @returns `false` if the member does not have this request, or nobody waits for its reply any more.
   */
  reply(member: GroupMember, ticketId: string, reply: Reply): boolean {
    const served = this.#served.get(ticketId)
    if (served?.member !== member) return false
    this.forget(ticketId)
    const { node, number } = served
    if (node === this.#groups.context.node) {
      this.#resolve(number, { ...reply, payload: copyBytes(reply.payload) })
      return true
    }
    const sent = this.#groups.send({ kind: 'reply', number, ...reply }, node)
    sent.catch((error: unknown) => this.#groups.report(error, 'a reply could not be sent'))
    return true
  }

  /** A member is gone: its requests get an error at once. */
  left(member: GroupMember): void {
    for (const id of [...(this.#byMember.get(member) ?? [])]) {
      // Later: a connection may close while the broker delivers.
      setImmediate(() => this.reply(member, id, errorReply('E_RESPONSE', LOST)))
    }
  }

  /** The session of who asks has closed: nobody waits for its replies. Cost: O(requests of its client). */
  closed(asker: Author): void {
    for (const number of [...(this.#waitingOf.get(clientNameOf(asker)) ?? [])]) {
      if (this.#waiting.get(number)?.asker !== asker) continue
      this.#groups.handOvers.cancel(number)
      this.#fail(number, 'E_DISCONNECTED', 'the requester is gone')
    }
  }

  receive({ number, payload, isBinary, isError }: TaskMessageOf<'reply'>, node: string): void {
    const waiting = this.#waiting.get(number)
    if (waiting === undefined) return
    // It may overtake the answer to the hand-over.
    this.#groups.handOvers.settled(node, number)
    this.#resolve(number, { payload: copyBytes(payload), isBinary, isError })
  }

  /** A node is gone: those who wait for its responders get an error. */
  gone(node: string): void {
    for (const [number, waiting] of [...this.#waiting]) {
      if (waiting.node === node) this.#fail(number, 'E_RESPONSE', LOST)
    }
  }

  stop(): void {
    for (const number of [...this.#waiting.keys()]) this.#fail(number, 'E_RESPONSE', 'the server stops')
    for (const id of [...this.#served.keys()]) this.forget(id)
  }

  #fail(number: number, code: string, message: string): void {
    this.#resolve(number, errorReply(code, message))
  }

  #resolve(number: number, reply: Reply): void {
    this.#end(number)?.reply.resolve(reply)
  }

  #end(number: number): Waiting | undefined {
    const waiting = this.#waiting.get(number)
    if (waiting === undefined) return undefined
    this.#waiting.delete(number)
    this.#groups.deadlines.clear(waiting.deadline)
    removeFrom(this.#waitingOf, waiting.client, number)
    return waiting
  }

  /** The request needs no reply any more: it has one, its time is over, or the member did not take it. */
  forget(id: string): void {
    const served = this.#served.get(id)
    if (served === undefined) return
    this.#served.delete(id)
    this.#groups.deadlines.clear(served.deadline)
    removeFrom(this.#servedOf, served.member.client, id)
    removeFrom(this.#byMember, served.member, id)
  }
}

export const LOST = 'the responder is gone, and may have handled the request'

export function errorReply(code: string, message: string): Reply {
  return { payload: Buffer.from(JSON.stringify({ code, message })), isBinary: false, isError: true }
}

function sizeOf<K>(sets: ReadonlyMap<K, ReadonlySet<unknown>>, key: K | undefined): number {
  return key === undefined ? 0 : (sets.get(key)?.size ?? 0)
}

function addTo<K, V>(sets: Map<K, Set<V>>, key: K | undefined, value: V): void {
  if (key !== undefined) sets.set(key, (sets.get(key) ?? new Set()).add(value))
}

function removeFrom<K, V>(sets: Map<K, Set<V>>, key: K | undefined, value: V): void {
  const values = key === undefined ? undefined : sets.get(key)
  if (key !== undefined && values?.delete(value) === true && values.size === 0) sets.delete(key)
}

/**
 * One group of responders gets a request: that of the pattern with the fewest wildcards, then that of the writer of a
 * stream, then the first by name.
 */
function mostSpecific(groups: readonly QueueGroup[]): QueueGroup | undefined {
  let best: QueueGroup | undefined
  for (const group of groups) if (best === undefined || group.rank < best.rank) best = group
  return best
}
