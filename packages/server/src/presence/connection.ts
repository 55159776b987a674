import { WebMQError } from 'webmq-client/protocol'
import type { ConnectionId, Transport } from '../ports/transport.js'
import type { Holder, LocalMembers } from './local-members.js'
import { createMember, memberIdOf } from './member.js'
import type { Members } from './members.js'
import type { Watchers } from './watchers.js'

/** Limits of presence. */
export interface PresenceLimits {
  /** Bytes of a member's data. */
  readonly maxDataBytes: number
  readonly maxMembersPerKey: number
  /** Bytes of all members of a key, which a client gets in one answer. */
  readonly maxKeyBytes: number
  /** Keys that a connection may enter; it may watch the same number of keys. */
  readonly maxKeysPerConnection: number
  /** Members of one user that this node holds, those whose connection was lost included. */
  readonly maxMembersPerUser: number
  /** Members of all nodes that this node keeps. */
  readonly maxMembers: number
  /** Bytes of all members of all nodes that this node keeps. */
  readonly maxBytes: number
}

/** What a {@link ConnectionPresence} works with; one per node. */
export interface ConnectionPresenceContext {
  readonly transport: Pick<Transport, 'join' | 'leave'>
  readonly members: Pick<Members, 'find' | 'sizeOf' | 'bytesOf' | 'entryCount' | 'byteLength'>
  readonly localMembers: LocalMembers
  readonly watchers: Watchers
  readonly limits: PresenceLimits
  /** Makes this node take part in presence. */
  readonly begin: () => void
}

/** The members and the watches of one connection. */
export class ConnectionPresence implements Holder {
  readonly #connection: ConnectionId
  readonly #context: ConnectionPresenceContext
  /** Member ids by key. */
  readonly #present = new Map<string, string>()
  readonly #watched = new Set<string>()

  constructor(connection: ConnectionId, context: ConnectionPresenceContext) {
    this.#connection = connection
    this.#context = context
  }

  /**
   * Enters a key, or updates the member's data; returns the id that others see. If the connection is present under
   * another name, that member leaves.
   *
   * @param name The client's name for its member. The same name means the same member, on all connections of its user.
   * @param data JSON text.
   * @throws {WebMQError} `E_PAYLOAD_INVALID`, `E_PAYLOAD_TOO_LARGE`, `E_PRESENCE_LIMIT`.
   */
  enter(key: string, userId: string | undefined, name: string, data: string | undefined): string {
    const { limits, localMembers, members, begin } = this.#context
    const id = memberIdOf(key, userId, name)
    const member = createMember(id, userId, data === undefined ? undefined : normalized(data, limits.maxDataBytes))
    const present = this.#present.get(key)
    const before = members.find(key, id)
    if (present === undefined && this.#present.size >= limits.maxKeysPerConnection) {
      throw tooMuch(`${limits.maxKeysPerConnection} keys of a connection`)
    }
    if (!localMembers.holds(key, id) && localMembers.countOf(userId) >= limits.maxMembersPerUser) {
      throw tooMuch(`${limits.maxMembersPerUser} members of a user`)
    }
    if (before === undefined) {
      if (members.sizeOf(key) >= limits.maxMembersPerKey) throw tooMuch(`${limits.maxMembersPerKey} members of a key`)
      if (members.entryCount >= limits.maxMembers) throw tooMuch(`${limits.maxMembers} members of all keys`)
    }
    const bytes = members.bytesOf(key) - (before?.byteLength ?? 0) + member.byteLength
    if (bytes > limits.maxKeyBytes) throw tooMuch(`${limits.maxKeyBytes} bytes of all members of a key`)
    if (members.byteLength - (before?.byteLength ?? 0) + member.byteLength > limits.maxBytes) {
      throw tooMuch(`${limits.maxBytes} bytes of the members of all keys`)
    }
    begin()
    if (present !== undefined && present !== id) localMembers.leave(key, present)
    this.#present.set(key, id)
    localMembers.put(key, member, userId, this)
    return id
  }

  /** Leaves a key; returns whether the connection was present there. */
  leave(key: string): boolean {
    const id = this.#present.get(key)
    if (id === undefined) return false
    this.#present.delete(key)
    this.#context.localMembers.leave(key, id)
    return true
  }

  lost(key: string, id: string): void {
    if (this.#present.get(key) === id) this.#present.delete(key)
  }

  /**
   * Begins to watch a key. Calls `answer` at the point from which all later changes reach the connection.
   * @returns The units of what other watchers had to be told first.
   * @throws {WebMQError} `E_PRESENCE_LIMIT`.
   */
  watch(key: string, answer: () => void): number {
    const { watchers, limits, transport } = this.#context
    const isKnown = this.#watched.has(key)
    if (!isKnown && this.#watched.size >= limits.maxKeysPerConnection) {
      throw tooMuch(`${limits.maxKeysPerConnection} watched keys`)
    }
    // Pending changes go out first, because the answer contains them too.
    const units = watchers.flush(key)
    if (isKnown) {
      answer()
      return units
    }
    const group = watchers.watch(key)
    this.#watched.add(key)
    answer()
    transport.join(this.#connection, group)
    return units
  }

  /** Units of telling the watchers of a key that so many bytes changed. */
  tellingUnits(key: string, byteCount: number): number {
    return this.#context.watchers.unitsOf(key, byteCount)
  }

  /** Ends a watch; a no-op without one. */
  unwatch(key: string): void {
    const { watchers, transport } = this.#context
    const group = watchers.groupOf(key)
    if (group === undefined || !this.#watched.delete(key)) return
    transport.leave(this.#connection, group)
    watchers.unwatch(key)
  }

  /** Leaves and unwatches the keys that are no longer granted, and returns them. */
  revoke(mayEnter: (key: string) => boolean, mayWatch: (key: string) => boolean): string[] {
    const left = [...this.#present.keys()].filter((key) => !mayEnter(key))
    const unwatched = [...this.#watched].filter((key) => !mayWatch(key))
    for (const key of left) this.leave(key)
    for (const key of unwatched) this.unwatch(key)
    return [...new Set([...left, ...unwatched])]
  }

  /**
   * The connection has closed.
   * @param isWanted The client closed it for good. Otherwise its members linger, because the client may come back.
   */
  close(isWanted: boolean): void {
    const { localMembers, watchers } = this.#context
    for (const [key, id] of this.#present) {
      if (isWanted) localMembers.leave(key, id)
      else localMembers.abandon(key, id)
    }
    for (const key of this.#watched) watchers.unwatch(key)
    this.#present.clear()
    this.#watched.clear()
  }
}

/** Rewrites the JSON text, so that spaces and number formats do not matter. */
function normalized(data: string, maxBytes: number): string {
  const byteLength = Buffer.byteLength(data)
  if (byteLength > maxBytes) {
    throw new WebMQError('E_PAYLOAD_TOO_LARGE', { detail: `${byteLength} bytes of presence data, at most ${maxBytes}` })
  }
  try {
    return JSON.stringify(JSON.parse(data))
  } catch (cause) {
    // Also thrown for JSON that is nested too deeply to be written again.
    throw new WebMQError('E_PAYLOAD_INVALID', { detail: 'presence data is JSON', cause })
  }
}

function tooMuch(detail: string): WebMQError {
  return new WebMQError('E_PRESENCE_LIMIT', { detail })
}
