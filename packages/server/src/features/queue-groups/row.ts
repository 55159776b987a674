import { logBug } from '../../kernel/base/log-bug.js'
import { LogPace } from '../../kernel/base/log-pace.js'
import { clientNameOf } from '../../kernel/identity/actor.js'
import type { Broker } from '../../kernel/ports/broker.js'
import type { Responders } from '../../kernel/publishing/requests.js'
import type { LocalHandler } from '../../kernel/routing/local-listeners.js'
import { noLongerGranted } from '../../kernel/session/handlers/auth.js'
import type { Session } from '../../kernel/session/session.js'
import type { Feature } from '../feature.js'
import { ConnectionGroups, type ConnectionGroupsContext } from './connection.js'
import type { GroupName } from './group-message.js'
import { GroupedBroker } from './grouped-broker.js'
import { LocalMember } from './local-member.js'
import { type QueueGroupStats, QueueGroups, type QueueGroupsContext } from './queue-groups.js'
import { groupVerbs, mayJoin } from './verbs.js'

type Context = QueueGroupsContext & Omit<ConnectionGroupsContext, 'groups'>

const REFUSED_LOG_INTERVAL_MS = 10_000

export const queueGroups = {
  metrics: {
    webmq_queue_groups: 'groupCount: Queue groups of all nodes that this node knows, those of responders included.',
    webmq_queue_group_members: 'memberCount: Members of queue groups on this node.',
    webmq_queue_group_pending: 'pendingCount: Messages that wait for the answer of the node of a member.',
    webmq_queue_group_pending_bytes: 'pendingBytes: Bytes of these messages; `brokerMaxPendingBytes` is the limit.',
    webmq_queue_group_waiting: 'waitingCount: Those of these messages whose node does not answer at present.',
    webmq_requests_pending: 'requestCount: Requests of this node that wait for a reply.',
    webmq_queue_group_handed_total: 'handedCount: Messages and requests that members of this node have got.',
    webmq_queue_group_missed_total:
      'missedCount: Messages that no member got: the queue group had none any more, or a hook failed.',
    webmq_queue_group_failed_total:
      'failedCount: Messages and requests that failed: nodes with members did not answer, or took no more.',
    webmq_queue_group_dropped_total:
      'droppedCount: Unreadable messages about queue groups, and members of other nodes above the limit.',
  },
  open(context: Context) {
    const groups = new QueueGroups(context)
    const memberships = new ConnectionMemberships({ ...context, groups })
    return {
      verbs: groupVerbs(groups, memberships),
      revoke(session) {
        const revoked = memberships.known(session)?.revoke((name) => mayJoin(session, name))
        for (const { kind, group, pattern } of revoked ?? []) {
          session.services.observer?.unlistened?.(session, pattern)
          const { code, message } = noLongerGranted(`listen ${pattern}`)
          const respond = kind === 'respond' ? ({ respond: true } as const) : {}
          session.reply({ verb: 'ended', group, pattern, ...respond, code, message })
        }
      },
      closed(session) {
        memberships.closed(session)
        if (session.requestCount > 0) groups.requests.closed(session)
      },
      stop: () => groups.stop(),
      stats: () => groups.stats(),
      responders: {
        assertSupported: () => groups.assertSupported(),
        ask: (request, withinMs, asker) => groups.requests.ask(request, withinMs, asker),
      } satisfies Responders,
      /** The same broker, whose publishes reach members too. */
      withMembers: (broker: Broker): Broker => new GroupedBroker(broker, groups),
      join: (name: GroupName, handler: LocalHandler) => joinLocally(groups, name, handler),
    }
  },
} satisfies Feature<Context, QueueGroupStats>

/** Those of connections that have not closed. */
class ConnectionMemberships {
  readonly #context: ConnectionGroupsContext
  readonly #byConnection = new Map<Session['connection'], ConnectionGroups>()

  constructor(context: ConnectionGroupsContext) {
    this.#context = context
  }

  of(session: Session): ConnectionGroups {
    const { connection } = session
    let own = this.#byConnection.get(connection)
    if (own === undefined) {
      own = new ConnectionGroups(connection, clientNameOf(session), this.#context)
      session.groupCounts = own
      this.#byConnection.set(connection, own)
    }
    return own
  }

  known({ connection }: Session): ConnectionGroups | undefined {
    return this.#byConnection.get(connection)
  }

  closed({ connection }: Session): void {
    this.#byConnection.get(connection)?.close()
    this.#byConnection.delete(connection)
  }
}

/**
 * Makes an in-process handler a member of a queue group. Resolves, once all nodes know it, to a function that ends it.
 * @throws {WebMQError} `E_UNSUPPORTED`, `E_LISTEN_LIMIT`, `E_BROKER_UNAVAILABLE`.
 */
async function joinLocally(groups: QueueGroups, name: GroupName, handler: LocalHandler): Promise<() => void> {
  const { logger, maxPayloadBytes } = groups.context
  const pace = new LogPace(REFUSED_LOG_INTERVAL_MS)
  const member = new LocalMember(groups, maxPayloadBytes, handler, (err, key, isOwn) => {
    if (isOwn) return logBug(logger, { err, key, ...name }, 'a member of a queue group failed')
    const others = pace.take()
    if (others !== undefined) logger.debug({ err, key, ...name, others }, 'a message for a queue group is not JSON')
  })
  await groups.join(name, member)
  return () => {
    member.close()
    groups.leave(name, member)
    groups.requests.left(member)
  }
}
