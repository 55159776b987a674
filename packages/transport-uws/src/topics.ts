import type { GroupId } from 'webmq-server/ports'
import type { UwsConnection, UwsFrame } from './connection.js'
import type { UwsApp } from './module.js'
import { NO_TOPIC, type UwsOutbox } from './outbox.js'

/** Members from which on a group has a topic. For fewer, a topic costs more than it saves. */
export const TOPIC_MEMBERS = 8

/** Bytes per member that are published before all members are looked at, in the middle of a turn. */
const CHECK_BYTES = 64 * 1024

/** A topic of uWebSockets.js for one group. */
interface Topic {
  readonly name: string
  readonly members: ReadonlySet<UwsConnection>
  /** Members that are not subscribed, because their messages wait in a backlog. */
  readonly apart: Set<UwsConnection>
  /** Published since the members were last looked at. */
  uncheckedBytes: number
}

/**
 * Publishes to all members of one group by one call of uWebSockets.js, which joins the messages of a turn in C++.
 *
 * A topic stands for exactly one group, so only a multicast to a single group can take this way: a publish to several
 * topics would reach a connection several times. Published frames and frames of {@link UwsOutbox} keep the order of the
 * calls, because:
 * - uWebSockets.js writes a publish before any later send to the same connection.
 * - Frames that wait in {@link UwsOutbox} are sent before the publish.
 * - A connection with a backlog is apart: it gets each message by itself, behind its backlog.
 *
 * uWebSockets.js keeps at most 32 messages of less than 16 KiB per connection that are not written yet. They are shared,
 * and not counted as waiting.
 */
export class UwsTopics {
  readonly #outbox: UwsOutbox
  readonly #minMembers: number
  readonly #compressFromBytes: number
  readonly #topics = new Map<GroupId, Topic>()
  readonly #unchecked = new Set<Topic>()
  #turnEnd: NodeJS.Immediate | undefined

  constructor(outbox: UwsOutbox, compressFromBytes: number, minMembers: number) {
    this.#outbox = outbox
    this.#compressFromBytes = compressFromBytes
    this.#minMembers = minMembers
  }

  /** The connection has joined the group, which has these members now. */
  joined(connection: UwsConnection, group: GroupId, members: ReadonlySet<UwsConnection>): void {
    const topic = this.#topics.get(group)
    if (topic !== undefined) this.#enter(connection, topic)
    else if (members.size >= this.#minMembers) {
      const created: Topic = { name: `g${group}`, members, apart: new Set(), uncheckedBytes: 0 }
      this.#topics.set(group, created)
      for (const member of members) this.#enter(member, created)
    }
  }

  /** The connection has left the group, by itself or because it has closed. */
  left(connection: UwsConnection, group: GroupId): void {
    const topic = this.#topics.get(group)
    if (topic === undefined) return
    topic.apart.delete(connection)
    connection.socket?.unsubscribe(topic.name)
    if (topic.members.size > 0) return
    this.#topics.delete(group)
    this.#unchecked.delete(topic)
  }

  /** Messages of the connection wait in a backlog from now on, or no longer. */
  setApart(connection: UwsConnection, isApart: boolean): void {
    for (const group of connection.groups) {
      const topic = this.#topics.get(group)
      if (topic === undefined) continue
      topic.apart.delete(connection)
      if (!isApart) this.#enter(connection, topic)
      else {
        topic.apart.add(connection)
        connection.socket?.unsubscribe(topic.name)
      }
    }
  }

  /** @returns `false`: the group has no topic. */
  publish(app: UwsApp, group: GroupId, frame: UwsFrame, except: UwsConnection | undefined): boolean {
    const topic = this.#topics.get(group)
    if (topic === undefined) return false
    this.#outbox.flushCollected()
    const { name, members, apart } = topic
    const { data, isBinary } = frame
    const isCompressed = data.byteLength >= this.#compressFromBytes
    const excepted = except !== undefined && members.has(except) && !apart.has(except) ? except.socket : undefined
    // A connection's own publish reaches all but itself.
    if (excepted === undefined) app.publish(name, data, isBinary, isCompressed)
    else excepted.publish(name, data, isBinary, isCompressed)
    this.#outbox.countSent(members.size - apart.size - (excepted === undefined ? 0 : 1), data.byteLength)
    for (const member of apart) if (member !== except) this.#outbox.push(member, frame)
    this.#unchecked.add(topic)
    topic.uncheckedBytes += data.byteLength
    if (topic.uncheckedBytes >= CHECK_BYTES) this.#check(topic)
    // uWebSockets.js writes at the end of the turn, after the immediates: the next ones see what is left.
    this.#turnEnd ??= setImmediate(() => {
      this.#turnEnd = setImmediate(() => this.#checkAll())
    })
    return true
  }

  #enter(connection: UwsConnection, topic: Topic): void {
    if (connection.backlog !== undefined) {
      topic.apart.add(connection)
      return
    }
    // With its last subscription a connection would lose the messages that are not written yet. This one stays.
    connection.isSubscribed ||= connection.socket?.subscribe(NO_TOPIC) ?? false
    connection.socket?.subscribe(topic.name)
  }

  #checkAll(): void {
    this.#turnEnd = undefined
    const topics = [...this.#unchecked]
    this.#unchecked.clear()
    for (const topic of topics) this.#check(topic)
  }

  #check(topic: Topic): void {
    topic.uncheckedBytes = 0
    for (const member of topic.members) this.#outbox.checkWritten(member)
  }
}
