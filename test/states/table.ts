/** A state that a node can be in, and all that tells of it. `docs/operations.md` has these rows, and a test each cell. */
export interface StateRow {
  readonly state: string
  /** Status code and status of `/ready?full=503`, and members of the answer. */
  readonly ready: string
  /** A series and its value. */
  readonly metric: string
  /** All alerts that it raises. */
  readonly alerts: readonly string[]
  /** Label, check and begin of a line of `doctor`. */
  readonly doctor: string
  /** Level and begin of a line of the log. */
  readonly line: string
  /** What a client gets for a publish by WebSocket, and by HTTP. */
  readonly words: string
}

export type StateName = (typeof STATES)[number]['state']

const ACCEPTED = 'accepted'

export const STATES = [
  {
    state: 'starting, and the broker does not answer',
    ready: '503 starting, broker.reason',
    metric: 'webmq_node_status{status="starting"} = 1',
    alerts: ['WebMQNodeStarting'],
    doctor: 'FAIL health: the server is not ready: it is starting, and waits for its broker: connect ECONNREFUSED',
    line: 'warn: the broker is not reached yet',
    words: 'no connection',
  },
  {
    state: 'draining',
    ready: '503 draining',
    metric: 'webmq_node_status{status="draining"} = 1',
    alerts: ['WebMQNodeDraining'],
    doctor: 'FAIL health: the server is not ready: it is draining',
    line: 'info: leaving: not ready any more',
    words: ACCEPTED,
  },
  {
    state: 'gone',
    ready: 'no answer',
    metric: 'up = 0',
    alerts: ['WebMQNodeGone'],
    doctor: 'FAIL tcp: port',
    line: 'no line',
    words: 'no connection',
  },
  {
    state: 'the broker is down',
    ready: '503 broker-down, broker.reason',
    metric: 'webmq_broker_status{status="down"} = 1',
    alerts: ['WebMQBrokerDown', 'WebMQPublishesRefused'],
    doctor: 'FAIL health: the server is not ready: its broker is down:',
    line: 'warn: the broker is lost',
    words: 'E_BROKER_UNAVAILABLE: broker is unreachable or takes no messages',
  },
  {
    state: 'the broker is full: Redis without memory',
    ready: '200 ready, broker.status=blocked, broker.reason',
    metric: 'webmq_broker_status{status="blocked"} = 1',
    alerts: ['WebMQBrokerBlocked', 'WebMQPublishesRefused'],
    doctor: 'FAIL health: the server is not ready: its broker takes no messages: OOM command not allowed',
    line: 'warn: the broker takes no messages for now',
    words:
      "E_BROKER_UNAVAILABLE: broker is unreachable or takes no messages: it refused the message: OOM command not allowed when used memory > 'maxmemory'",
  },
  {
    state: 'the broker is blocked: memory alarm of RabbitMQ',
    ready: '200 ready, broker.status=blocked, broker.reason',
    metric: 'webmq_broker_status{status="blocked"} = 1',
    alerts: ['WebMQBrokerBlocked', 'WebMQPublishesRefused'],
    doctor: 'FAIL health: the server is not ready: its broker takes no messages: low on memory',
    line: 'warn: the broker takes no messages for now',
    words: 'E_BROKER_UNAVAILABLE: broker is unreachable or takes no messages: low on memory',
  },
  {
    state: 'pacing: the broker is too slow',
    ready: '200 ready, waitingPublishes',
    metric: 'webmq_publish_rate_limit_total{reason="broker"} > 0',
    alerts: ['WebMQBrokerTooSlow', 'WebMQPublishSlow'],
    doctor: 'warn pacing:',
    line: 'warn: the broker accepts messages more slowly than they come',
    words: 'E_RATE_LIMIT: ',
  },
  {
    state: 'full of connections',
    ready: '503 full',
    metric: 'webmq_connection_limit_total{reason="node"} > 0',
    alerts: ['WebMQConnectionLimit', 'WebMQNearlyFull'],
    doctor: 'FAIL health: the server is not ready: it is full',
    line: 'warn: the node is full',
    words: 'E_CONNECTION_LIMIT: ',
  },
  {
    state: 'the database outbox is down',
    ready: '200 ready, outbox=down, outboxReason',
    metric: 'webmq_outbox_status{status="down"} = 1',
    alerts: ['WebMQOutboxDown'],
    doctor: 'warn outbox: its database outbox is down: connect ECONNREFUSED',
    line: 'warn: the database outbox is down',
    words: ACCEPTED,
  },
  {
    state: 'a new certificate is refused',
    ready: '200 ready, certificate=refused',
    metric: 'webmq_tls_certificate_refused = 1',
    alerts: ['WebMQCertificateRefused'],
    doctor: 'warn certificate: its new TLS certificate cannot be used',
    line: 'error: the new TLS certificate cannot be used',
    words: ACCEPTED,
  },
  {
    state: 'a certificate has expired',
    ready: '200 ready, certificate=expired',
    metric: 'webmq_tls_certificate_expiration_timestamp_seconds > 0',
    alerts: ['WebMQCertificateExpires'],
    doctor: 'FAIL health: the server is not ready: a TLS certificate of it has expired',
    line: 'error: a TLS certificate has expired',
    words: 'no connection',
  },
  {
    state: "its clock is apart from another node's",
    ready: '200 ready, clockApartMs',
    metric: 'webmq_cluster_clock_apart_seconds > 290',
    alerts: ['WebMQClocksApart'],
    doctor: 'warn clocks: its clock is 300 s apart',
    line: 'warn: the state of the node: its clock is 300 s apart',
    words: ACCEPTED,
  },
  {
    state: 'another node logs other keys',
    ready: '200 ready, otherLogPeers=1, differentPeers=1',
    metric: 'webmq_cluster_other_log_peers = 1',
    alerts: ['WebMQNodesDiffer', 'WebMQNodesLogOtherKeys'],
    doctor: 'warn log rules: 1 other nodes log other keys',
    line: 'warn: another node has other options, or is of another version',
    words: ACCEPTED,
  },
  {
    state: 'another node has other options',
    ready: '200 ready, differentPeers=1',
    metric: 'webmq_cluster_different_peers = 1',
    alerts: ['WebMQNodesDiffer'],
    doctor: 'warn nodes: 1 other nodes have other options',
    line: 'warn: another node has other options, or is of another version',
    words: ACCEPTED,
  },
  {
    state: 'the log is smaller than its rule',
    ready: '200 ready, logHeldShare',
    metric: 'webmq_log_held_ratio < 1',
    alerts: ['WebMQLogShort'],
    doctor: 'warn log: its full log holds',
    line: 'warn: the state of the node: its full log holds',
    words: ACCEPTED,
  },
  {
    state: 'the audit log cannot be written',
    ready: '200 ready, auditWaitingBytes',
    metric: 'webmq_audit_lines_waiting_bytes > 0',
    alerts: ['WebMQAuditLinesWait'],
    doctor: 'warn audit log:',
    line: 'error: the audit log cannot be written',
    words: ACCEPTED,
  },
  {
    state: 'the webhook fails',
    ready: '200 ready, webhook=open',
    metric: 'webmq_webhook_breaker{status="open"} = 1',
    alerts: ['WebMQWebhookOpen'],
    doctor: 'warn webhook: its webhook fails',
    line: 'warn: the webhook fails, and is not asked for now',
    words: 'E_HOOK_FAILED: ',
  },
] as const satisfies readonly StateRow[]

/** The rows of `docs/operations.md`. */
export function pageRows(): readonly string[] {
  return STATES.map(({ state, ready, metric, alerts, doctor, line, words }) => {
    const links = alerts.map((alert) => `[${alert}](#${alert.toLowerCase()})`)
    const cells = [state, code(ready), code(metric), links.join(', '), code(doctor), code(line), code(words)]
    return `| ${cells.join(' | ')} |`
  })
}

function code(cell: string): string {
  return cell === ACCEPTED || cell.startsWith('no ') ? cell : `\`${cell.trim()}\``
}
