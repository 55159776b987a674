import { WebMQError } from 'webmq-client/protocol'
import type { ConnectionId, Transport } from '../ports/transport.js'
import type { Audience } from './audience.js'
import { createMember, memberIdOf } from './member.js'
import type { Holder, OwnMembers } from './own-members.js'
import type { Roster } from './roster.js'

/** Limits of presence. */
export interface PresenceLimits {
  /** Bytes of what a member says of itself. */
  readonly maxDataBytes: number
  readonly maxMembersPerKey: number
  /** Bytes of all members of a key, as a client gets them in one answer. */
  readonly maxKeyBytes: number
  /** Keys at which a connection may be present, and as many that it may watch. */
  readonly maxKeysPerConnection: number
  /** Members of all nodes that this node may know. */
  readonly maxMembers: number
}

/** What an {@link Attendance} works with; one per node. */
export interface AttendanceContext {
  readonly transport: Pick<Transport, 'join' | 'leave'>
  readonly roster: Pick<Roster, 'find' | 'sizeOf' | 'bytesOf' | 'entryCount'>
  readonly own: OwnMembers
  readonly audience: Audience
  readonly limits: PresenceLimits
  /** Presence is used on this node from now on. */
  readonly begin: () => void
}

/** Where one connection is present, and which keys it watches. */
export class Attendance implements Holder {
  readonly #connection: ConnectionId
  readonly #context: AttendanceContext
  /** Ids by key. */
  readonly #present = new Map<string, string>()
  readonly #watched = new Set<string>()

  constructor(connection: ConnectionId, context: AttendanceContext) {
    this.#connection = connection
    this.#context = context
  }

  /**
   * Makes the connection present at a key, or changes what it says there; returns the id under which others see it. One that was
   * present with another name leaves.
   *
   * @param name What the client calls its member: with the same name it is the same member, over all connections of its user.
   * @param data JSON text.
   * @throws {WebMQError} `E_PAYLOAD_INVALID`, `E_PAYLOAD_TOO_LARGE`, `E_PRESENCE_LIMIT`.
   */
  enter(key: string, userId: string | undefined, name: string, data: string | undefined): string {
    const { limits, own, roster, begin } = this.#context
    const id = memberIdOf(key, userId, name)
    const member = createMember(id, userId, data === undefined ? undefined : normalized(data, limits.maxDataBytes))
    const present = this.#present.get(key)
    const before = roster.find(key, id)
    if (present === undefined && this.#present.size >= limits.maxKeysPerConnection) {
      throw tooMuch(`${limits.maxKeysPerConnection} keys of a connection`)
    }
    if (before === undefined) {
      if (roster.sizeOf(key) >= limits.maxMembersPerKey) throw tooMuch(`${limits.maxMembersPerKey} members of a key`)
      if (roster.entryCount >= limits.maxMembers) throw tooMuch(`${limits.maxMembers} members of all keys`)
    }
    const bytes = roster.bytesOf(key) - (before?.byteLength ?? 0) + member.byteLength
    if (bytes > limits.maxKeyBytes) throw tooMuch(`${limits.maxKeyBytes} bytes of all members of a key`)
    begin()
    if (present !== undefined && present !== id) own.leave(key, present)
    this.#present.set(key, id)
    own.put(key, member, this)
    return id
  }

  /** Ends the presence at a key; nothing happens without one. */
  leave(key: string): void {
    const id = this.#present.get(key)
    if (id === undefined) return
    this.#present.delete(key)
    this.#context.own.leave(key, id)
  }

  lost(key: string, id: string): void {
    if (this.#present.get(key) === id) this.#present.delete(key)
  }

  /**
   * Begins to watch a key: `answer` is called once everything that is to come is newer than the roster then.
   * @throws {WebMQError} `E_PRESENCE_LIMIT`.
   */
  watch(key: string, answer: () => void): void {
    const { audience, limits, transport } = this.#context
    if (this.#watched.has(key)) {
      // What is still to be told is in the answer, too.
      audience.tell(key)
      answer()
      return
    }
    if (this.#watched.size >= limits.maxKeysPerConnection) throw tooMuch(`${limits.maxKeysPerConnection} watched keys`)
    const group = audience.watch(key)
    this.#watched.add(key)
    answer()
    transport.join(this.#connection, group)
  }

  /** Ends a watch; nothing happens without one. */
  unwatch(key: string): void {
    const { audience, transport } = this.#context
    const group = audience.groupOf(key)
    if (group === undefined || !this.#watched.delete(key)) return
    transport.leave(this.#connection, group)
    audience.unwatch(key)
  }

  /** Ends what is no longer granted, and returns the keys. */
  revoke(isGranted: (key: string) => boolean): string[] {
    const keys = [...new Set([...this.#present.keys(), ...this.#watched])].filter((key) => !isGranted(key))
    for (const key of keys) {
      this.leave(key)
      this.unwatch(key)
    }
    return keys
  }

  /**
   * The connection is gone.
   * @param isWanted The client has said that it goes; otherwise it may come back, and its members wait for it.
   */
  close(isWanted: boolean): void {
    const { own, audience } = this.#context
    for (const [key, id] of this.#present) {
      if (isWanted) own.leave(key, id)
      else own.abandon(key, id)
    }
    for (const key of this.#watched) audience.unwatch(key)
    this.#present.clear()
    this.#watched.clear()
  }
}

/** The same for all nodes, whatever spaces and digits a client has written. */
function normalized(data: string, maxBytes: number): string {
  const byteLength = Buffer.byteLength(data)
  if (byteLength > maxBytes) {
    throw new WebMQError('E_PAYLOAD_TOO_LARGE', { detail: `${byteLength} bytes of presence data, at most ${maxBytes}` })
  }
  try {
    return JSON.stringify(JSON.parse(data))
  } catch (cause) {
    // Also what is nested so deeply that it cannot be written again.
    throw new WebMQError('E_PAYLOAD_INVALID', { detail: 'presence data is JSON', cause })
  }
}

function tooMuch(detail: string): WebMQError {
  return new WebMQError('E_PRESENCE_LIMIT', { detail })
}
