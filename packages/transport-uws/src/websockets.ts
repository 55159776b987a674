import { ERRORS } from 'webmq-client/protocol'
import type { ConnectionId, GroupId, OutboxLevel, TransportOptions } from 'webmq-server/ports'
import type { Connections, Droppable, SinkCalls } from 'webmq-server/transports'
import { Keepalive } from 'webmq-server/transports'
import type { UwsConnection, UwsFrame } from './connection.js'
import type { UwsApp } from './module.js'
import { UwsOutbox } from './outbox.js'
import { UwsTopics } from './topics.js'

/** Why the transport itself closes a connection. */
type OwnReason = 'E_SLOW_CONSUMER' | 'E_HEARTBEAT_TIMEOUT' | 'E_INTERNAL' | 'E_MESSAGE_TOO_LARGE'

/** What happens to open WebSockets: what they are sent, and how they end. */
export class UwsWebSockets {
  readonly #maxMessageBytes: number
  readonly #connections: Connections<UwsConnection>
  readonly #calls: () => SinkCalls | undefined
  readonly #topics: UwsTopics
  readonly outbox: UwsOutbox
  readonly keepalive: Keepalive<UwsConnection>

  /** @param topicMembers Members from which on a group has a topic. */
  constructor(
    options: TransportOptions,
    connections: Connections<UwsConnection>,
    calls: () => SinkCalls | undefined,
    topicMembers: number,
  ) {
    this.#maxMessageBytes = options.maxMessageBytes
    this.#connections = connections
    this.#calls = calls
    const { maxOutboxBytes, compression } = options
    const compressFromBytes = compression?.thresholdBytes ?? Number.POSITIVE_INFINITY
    this.outbox = new UwsOutbox(
      { maxOutboxBytes, compressFromBytes },
      {
        overflow: (connection) => {
          connections.slowConsumerCount++
          this.drop(connection, 'E_SLOW_CONSUMER')
        },
        drained: (connection) => calls()?.drained(connection.id),
        held: (connection, isHeld) => this.#topics.setApart(connection, isHeld),
      },
    )
    this.#topics = new UwsTopics(this.outbox, compressFromBytes, topicMembers)
    this.keepalive = new Keepalive(options, connections.open, {
      // Complete messages, pings and pongs count as activity: uWebSockets.js does not report fragments.
      ping: (connection) => void connection.socket?.ping(),
      silent: (connection) => this.drop(connection, 'E_HEARTBEAT_TIMEOUT'),
    })
  }

  join(connection: UwsConnection, group: GroupId): void {
    if (connection.groups.has(group)) return
    this.#topics.joined(connection, group, this.#connections.join(connection, group))
  }

  leave(connection: UwsConnection, group: GroupId): void {
    this.#connections.leave(connection, group)
    this.#topics.left(connection, group)
  }

  /**
   * Sends to the members of groups by a topic of uWebSockets.js.
   * @returns `false`: there are several groups, the one has no topic, or some members may miss the message.
   */
  publish(
    app: UwsApp,
    groups: readonly GroupId[],
    frame: UwsFrame,
    except: ConnectionId | undefined,
    topic: number | undefined,
  ): boolean {
    const [group] = groups
    if (group === undefined || groups.length > 1 || this.#connections.mayLeaveOut(groups, topic)) return false
    const excepted = except === undefined ? undefined : this.#connections.get(except)
    return this.#topics.publish(app, group, frame, excepted)
  }

  opened(connection: UwsConnection): void {
    this.#connections.add(connection)
    this.keepalive.alive(connection)
    this.#calls()?.open(connection.id, connection.upgrade)
  }

  received(connection: UwsConnection, data: Uint8Array, isBinary: boolean): void {
    if (data.byteLength > this.#maxMessageBytes) this.drop(connection, 'E_MESSAGE_TOO_LARGE')
    else this.#calls()?.message(connection.id, data, isBinary)
  }

  /** A part of the waiting output was written. */
  drained(connection: UwsConnection): void {
    this.keepalive.restart(connection)
    this.outbox.drained(connection)
  }

  close(connection: UwsConnection, code: number, reason: string): void {
    this.outbox.release(connection)
    // Absent when the flush just closed the connection as a slow consumer.
    connection.socket?.end(code, reason)
  }

  push(connection: UwsConnection, frame: UwsFrame, droppable?: Droppable): void {
    this.outbox.push(connection, frame, droppable)
  }

  await(connection: UwsConnection, level: OutboxLevel): void {
    this.outbox.await(connection, level)
  }

  pause(): void {
    // uWebSockets.js cannot stop reading from one connection.
  }

  resume(): void {
    // Nothing is paused.
  }

  fail(connection: UwsConnection): void {
    this.drop(connection, 'E_INTERNAL')
  }

  drop(connection: UwsConnection, reason: OwnReason): void {
    this.close(connection, ERRORS[reason].closeCode, reason)
  }

  closed(connection: UwsConnection, code: number, reason: string): void {
    connection.socket = undefined
    this.outbox.clear(connection)
    const groups = [...connection.groups]
    this.#connections.remove(connection)
    this.#connections.forget(connection)
    for (const group of groups) this.#topics.left(connection, group)
    this.#calls()?.closed(connection.id, code, reason)
  }
}
