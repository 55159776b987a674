import { integer } from '../spec.js'
import { MAX_TIMER_MS } from './checks.js'

export const TIME_LIMITS_OPTIONS = {
  handshakeTimeoutMs: integer({
    range: [10, MAX_TIMER_MS],
    default: 5000,
    help: 'Time from accept to the end of the WebSocket handshake.',
  }),
  authTimeoutMs: integer({
    range: [10, MAX_TIMER_MS],
    reloadable: true,
    default: 10_000,
    help: 'Time for a client to send a required token; then the connection is closed with 4002.',
  }),
  messageTimeoutMs: integer({
    range: [100, MAX_TIMER_MS],
    default: 30_000,
    help: 'Time from the first byte of a message to its last; then the connection is closed with 4004.',
    detail: 'The uws transport ignores it.',
  }),
  httpKeepAliveMs: integer({
    range: [1_000, 3_600_000],
    default: 65_000,
    help: 'Time for which an idle connection of plain HTTP stays open for its next request.',
    detail:
      'Keep it above the idle time of a proxy or a caller that pools its connections: 60 s of an AWS ALB and of nginx.',
  }),
  pingIntervalMs: integer({
    range: [10, MAX_TIMER_MS],
    default: 25_000,
    help: 'Silence after which the server pings a client.',
    detail:
      'Clients use the same value as their heartbeat interval. Keep it below 60 s, after which most proxies cut idle connections.',
  }),
  pingTimeoutMs: integer({
    range: [10, MAX_TIMER_MS],
    default: 10_000,
    help: 'Silence after a ping until the connection is closed with 4003.',
  }),
  closeTimeoutMs: integer({
    range: [10, MAX_TIMER_MS],
    default: 5000,
    help: 'Time for a client to answer a close frame; then its socket is destroyed.',
  }),
  drainTimeoutMs: integer({
    range: [0, MAX_TIMER_MS],
    reloadable: true,
    default: 25_000,
    help: 'Longest time over which connections are closed (4001, reconnect) when the server stops.',
    detail:
      'Spreading the closes protects the other nodes from a stampede. The process ends at most 2 s later, so the default is below the 30 s after which Kubernetes kills it.',
  }),
  drainDelayMs: integer({
    range: [0, MAX_TIMER_MS],
    reloadable: true,
    default: 0,
    help: 'Time from the stop signal until the drain begins. Meanwhile `/ready` says 503, and clients may still connect.',
    detail:
      'For load balancers and Kubernetes, which need a few seconds to notice that a node leaves. It adds to `drainTimeoutMs`.',
  }),
  drainPerSecond: integer({
    reloadable: true,
    range: [1, 1_000_000],
    default: 100,
    help: 'Connections that are closed per second while the server drains; more, if `drainTimeoutMs` is too short for all.',
    detail:
      'Each client connects again to another node and may fetch a new token first, so your token endpoint has to take this rate.',
  }),
}
