import { WebMQError } from 'webmq-client/protocol'
import { assertShallow } from '../../kernel/base/json-excess.js'
import { compactJson } from '../../kernel/base/json-text.js'
import { isJson } from '../../kernel/base/parse-json.js'
import { type Actor, clientNameOf, isProxied } from '../../kernel/identity/actor.js'
import type { ConnectionId, Transport } from '../../kernel/ports/transport.js'
import type { Holder, LocalMembers } from './local-members.js'
import { createMember, type Member, memberIdOf } from './member.js'
import type { Members } from './members.js'
import type { Watchers } from './watchers.js'

/** Options of the server that limit presence. Read on each use: a reload changes them. */
export interface PresenceLimits {
  readonly presenceMaxDataBytes: number
  readonly presenceMaxMembersPerKey: number
  /** Keys that a connection may enter; it may watch the same number of keys. */
  readonly presenceMaxKeysPerConnection: number
  /** Members of one user, or of one address of anonymous clients, that this node holds, those whose connection was lost included. */
  readonly presenceMaxMembersPerUser: number
  /** Members of all nodes that this node keeps. */
  readonly presenceMaxMembers: number
  /** Bytes of all members of all nodes that this node keeps. */
  readonly presenceMaxBytes: number
  /** Half of it is for all members of a key, which a client gets in one answer: as a replay, it leaves room for live messages. */
  readonly maxOutboxBytes: number
}

/** What the connections of a node share. */
export interface SharedPresence {
  readonly limits: PresenceLimits
  readonly transport: Pick<Transport, 'join' | 'leave'>
  readonly members: Members
  readonly localMembers: LocalMembers
  readonly watchers: Watchers
  /** The node begins to take part. */
  readonly begin: () => void
}

/** A change of a connection's own member. */
export interface OwnChange {
  /** The id that others see. */
  readonly id: string
  /** The message that tells it to the connection, if it watches the key; the others are told a moment later. */
  readonly told: string | undefined
}

/** Of all members, those of a loopback or private address of anonymous clients: behind it is usually a proxy. */
const PROXY_SHARE = 1 / 4

export class ConnectionPresence implements Holder {
  readonly #connection: ConnectionId
  readonly #shared: SharedPresence
  /** Member ids by key. */
  readonly #present = new Map<string, string>()
  readonly #watched = new Set<string>()

  constructor(connection: ConnectionId, shared: SharedPresence) {
    this.#connection = connection
    this.#shared = shared
  }

  /**
   * Enters a key, or updates the member's data. If the connection is present under another name, that member leaves.
   *
   * @param client Whose member it is.
   * @param name The client's name for its member. The same name means the same member, on all connections of its user.
   * @param data JSON text.
   * @throws {WebMQError} `E_PAYLOAD_INVALID`, `E_PAYLOAD_TOO_LARGE`, `E_PRESENCE_LIMIT`.
   */
  enter(key: string, client: Pick<Actor, 'userId' | 'address'>, name: string, data: string | undefined): OwnChange {
    const { limits, localMembers, members } = this.#shared
    const { userId } = client
    const owner = clientNameOf(client)
    const id = memberIdOf(key, userId, name)
    const member = createMember(
      id,
      userId,
      data === undefined ? undefined : normalized(data, limits.presenceMaxDataBytes),
    )
    const present = this.#present.get(key)
    const before = members.find(key, id)
    const assertBelow = (count: number, max: number, what: string) => {
      if (count >= max) throw tooMuch(`${max} ${what}`)
    }
    if (present === undefined)
      assertBelow(this.#present.size, limits.presenceMaxKeysPerConnection, 'keys of a connection')
    if (!localMembers.holds(key, id)) {
      const { presenceMaxMembersPerUser: maxMembers, presenceMaxMembers } = limits
      const max = isProxied(client) ? Math.max(maxMembers, Math.floor(PROXY_SHARE * presenceMaxMembers)) : maxMembers
      assertBelow(localMembers.countOf(owner), max, `members of ${userId === undefined ? 'an address' : 'a user'}`)
    }
    if (before === undefined) {
      assertBelow(members.sizeOf(key), limits.presenceMaxMembersPerKey, 'members of a key')
      assertBelow(members.entryCount, limits.presenceMaxMembers, 'members of all keys')
    }
    const moreBytes = member.byteLength - (before?.byteLength ?? 0)
    const maxKeyBytes = limits.maxOutboxBytes / 2
    if (members.bytesOf(key) + moreBytes > maxKeyBytes) throw tooMuch(`${maxKeyBytes} bytes of all members of a key`)
    if (members.byteLength + moreBytes > limits.presenceMaxBytes) {
      throw tooMuch(`${limits.presenceMaxBytes} bytes of the members of all keys`)
    }
    this.#shared.begin()
    const changed = new Map([[id, before]])
    if (present !== undefined && present !== id) {
      changed.set(present, members.find(key, present))
      localMembers.leave(key, present)
    }
    this.#present.set(key, id)
    localMembers.put(key, member, owner, this)
    return { id, told: this.#told(key, changed) }
  }

  /** Leaves a key; `undefined` if the connection was not present there. */
  leave(key: string): OwnChange | undefined {
    const id = this.#present.get(key)
    if (id === undefined) return undefined
    const { localMembers, members } = this.#shared
    const changed = new Map([[id, members.find(key, id)]])
    this.#present.delete(key)
    localMembers.leave(key, id)
    return { id, told: this.#told(key, changed) }
  }

  #told(key: string, changed: ReadonlyMap<string, Member | undefined>): string | undefined {
    return this.#watched.has(key) ? this.#shared.watchers.differenceOf(key, changed) : undefined
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
    const { watchers, transport, limits } = this.#shared
    const { presenceMaxKeysPerConnection: maxKeys } = limits
    const isKnown = this.#watched.has(key)
    if (!isKnown && this.#watched.size >= maxKeys) throw tooMuch(`${maxKeys} watched keys`)
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

  /** Units of telling the watchers of a key of `byteCount` changed bytes. */
  tellingUnits(key: string, byteCount: number): number {
    return this.#shared.watchers.unitsOf(key, byteCount)
  }

  /** Ends a watch; a no-op without one. */
  unwatch(key: string): void {
    const { watchers, transport } = this.#shared
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
    const { localMembers, watchers } = this.#shared
    for (const [key, id] of this.#present) {
      if (isWanted) localMembers.leave(key, id)
      else localMembers.abandon(key, id)
    }
    for (const key of this.#watched) watchers.unwatch(key)
    this.#present.clear()
    this.#watched.clear()
  }
}

/** Without spaces, which do not matter. Numbers keep all their digits. */
function normalized(data: string, maxBytes: number): string {
  const byteLength = Buffer.byteLength(data)
  if (byteLength > maxBytes) {
    throw new WebMQError('E_PAYLOAD_TOO_LARGE', { detail: `${byteLength} bytes of presence data, at most ${maxBytes}` })
  }
  assertShallow(Buffer.from(data))
  if (!isJson(data)) throw new WebMQError('E_PAYLOAD_INVALID', { detail: 'presence data is JSON' })
  return compactJson(data)
}

function tooMuch(detail: string): WebMQError {
  return new WebMQError('E_PRESENCE_LIMIT', { detail })
}
