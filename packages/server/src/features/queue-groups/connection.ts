import { replyHeader, taskHeader } from 'webmq-client/protocol'
import { catching, type MaybePromise } from '../../kernel/base/maybe-promise.js'
import type { ConnectionId, OutboxLevel, Transport } from '../../kernel/ports/transport.js'
import { isSearch } from '../../kernel/ports/word-limits.js'
import type { Reply } from '../../kernel/publishing/requests.js'
import { type GroupMember, type GroupMessage, type GroupName, groupIdOf, type RequestTicket } from './group-message.js'
import type { QueueGroups } from './queue-groups.js'

export interface ConnectionGroupsContext {
  readonly transport: Pick<Transport, 'send'>
  /** Calls `drained` once, as {@link Transport.notifyDrained} says. */
  readonly drains: { await(connection: ConnectionId, level: OutboxLevel, drained: () => void): void }
  readonly groups: Pick<QueueGroups, 'join' | 'leave' | 'requests'>
  /** Read on each use: a reload changes it. */
  readonly limits: { readonly maxOutboxBytes: number }
  /** Is told of each membership of a connection that begins (1), or ends while the connection stays (-1). */
  readonly listensChanged: (connection: ConnectionId, by: 1 | -1) => void
}

/** A member with this many bytes in its outbox, or requests without a reply, gets less while others have less. */
const LAG_BYTES = 65_536
const LAG_REQUESTS = 64
/** Part of the outbox that tasks and replies may fill; the rest is for everything else. */
const OUTBOX_PART = 1 / 2

export class ConnectionGroups implements GroupMember {
  readonly client: string
  readonly #connection: ConnectionId
  readonly #context: ConnectionGroupsContext
  readonly #names = new Map<string, GroupName>()
  /** Patterns with a `#` before their last word. */
  searchCount = 0
  /** Bytes that may not have been written to the socket yet. */
  #unwrittenBytes = 0
  #isWatched = false
  #isClosed = false

  /** @param client Under which name its client is counted. */
  constructor(connection: ConnectionId, client: string, context: ConnectionGroupsContext) {
    this.#connection = connection
    this.client = client
    this.#context = context
  }

  get size(): number {
    return this.#names.size
  }

  get isLagging(): boolean {
    return this.#unwrittenBytes > LAG_BYTES || this.#context.groups.requests.countOf(this) >= LAG_REQUESTS
  }

  has(name: GroupName): boolean {
    return this.#names.has(groupIdOf(name))
  }

  /** As {@link QueueGroups.join}. A second time is a no-op. */
  join(name: GroupName): MaybePromise<void> {
    const id = groupIdOf(name)
    if (this.#names.has(id)) return undefined
    const { groups, listensChanged } = this.#context
    this.#names.set(id, name)
    if (isSearch(name.pattern)) this.searchCount++
    listensChanged(this.#connection, 1)
    return catching(
      () => groups.join(name, this),
      (error) => {
        if (this.#remove(id, name)) listensChanged(this.#connection, -1)
        throw error
      },
    )
  }

  /** Ends a membership; returns whether there was one. */
  leave(name: GroupName): boolean {
    const id = groupIdOf(name)
    if (!this.#remove(id, name)) return false
    this.#context.groups.leave(name, this)
    this.#context.listensChanged(this.#connection, -1)
    return true
  }

  /** Ends the memberships that are no longer granted and returns them. */
  revoke(isGranted: (name: GroupName) => boolean): GroupName[] {
    return [...this.#names.values()].filter((name) => !isGranted(name) && this.leave(name))
  }

  take({ kind, group, pattern }: GroupName, message: GroupMessage, ticket: RequestTicket | undefined): boolean {
    const { key, payload, isBinary } = message
    if (this.#isClosed || !this.#hasRoom(payload.length)) return false
    const request = kind === 'respond' && ticket !== undefined ? { request: ticket.id, withinMs: ticket.withinMs } : {}
    this.#send(taskHeader({ group, pattern, key, ...request }), payload, isBinary)
    return true
  }

  reply(id: string, { payload, isBinary, isError }: Reply): void {
    if (!this.#isClosed) this.#send(replyHeader({ id, isError }), payload, isBinary)
  }

  close(): void {
    this.#isClosed = true
    for (const name of this.#names.values()) this.#context.groups.leave(name, this)
    this.#names.clear()
    this.#context.groups.requests.left(this)
  }

  /** A large message leaves as much room as it takes: it is refused before small ones of others are. */
  #hasRoom(byteCount: number): boolean {
    if (this.#unwrittenBytes === 0) return true
    return this.#unwrittenBytes + 2 * byteCount <= this.#context.limits.maxOutboxBytes * OUTBOX_PART
  }

  #send(header: string, payload: Uint8Array, isBinary: boolean): void {
    const data = Buffer.concat([Buffer.from(header), payload])
    this.#unwrittenBytes += data.length
    this.#context.transport.send(this.#connection, data, isBinary)
    this.#watch()
  }

  #watch(): void {
    if (this.#isWatched) return
    this.#isWatched = true
    const byteCount = this.#unwrittenBytes
    this.#context.drains.await(this.#connection, 'empty', () => {
      this.#isWatched = false
      this.#unwrittenBytes -= byteCount
      if (this.#unwrittenBytes > 0) this.#watch()
    })
  }

  #remove(id: string, name: GroupName): boolean {
    if (!this.#names.delete(id)) return false
    if (isSearch(name.pattern)) this.searchCount--
    return true
  }
}
