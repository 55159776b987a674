import type { OptionSpec } from '../spec.js'
import { MAX_TIMER_MS } from './checks.js'

const time = { section: 'Time limits', type: 'integer', unit: 'ms', max: MAX_TIMER_MS } as const

/** Time limits of connections. */
export const TIME_LIMITS_OPTIONS = [
  {
    ...time,
    name: 'handshakeTimeoutMs',
    flag: 'handshake-timeout',
    min: 10,
    default: 5000,
    help: 'Time from accept to the end of the WebSocket handshake.',
    detail: 'Frees the sockets of clients that connect and send nothing.',
  },
  {
    ...time,
    name: 'authTimeoutMs',
    flag: 'auth-timeout',
    min: 10,
    default: 10_000,
    help: 'Time for a client to send a required token; then the connection is closed with 4002.',
    detail: 'Prevents clients without a token from occupying connections.',
  },
  {
    ...time,
    name: 'messageTimeoutMs',
    flag: 'message-timeout',
    min: 100,
    default: 30_000,
    help: 'Time from the first byte of a message to its last; then the connection is closed with 4004.',
    detail: 'Frees the memory of messages that are begun and never ended. The uws transport ignores it.',
  },
  {
    ...time,
    name: 'pingIntervalMs',
    flag: 'ping-interval',
    min: 10,
    default: 25_000,
    help: 'Silence after which the server pings a client.',
    detail:
      'Clients use the same value as their heartbeat interval. Keep it below 60 s, after which most proxies cut idle connections.',
  },
  {
    ...time,
    name: 'pingTimeoutMs',
    flag: 'ping-timeout',
    min: 10,
    default: 10_000,
    help: 'Silence after a ping until the connection is closed with 4003.',
    detail: 'Detects half-open connections after a network loss.',
  },
  {
    ...time,
    name: 'closeTimeoutMs',
    flag: 'close-timeout',
    min: 10,
    default: 5000,
    help: 'Time for a client to answer a close frame; then its socket is destroyed.',
  },
  {
    ...time,
    name: 'drainTimeoutMs',
    flag: 'drain-timeout',
    min: 0,
    default: 25_000,
    help: 'Longest time over which connections are closed (4001, reconnect) when the server stops.',
    detail:
      'Spreading the closes protects the other nodes from a stampede. The process ends at most 2 s later, so the default is below the 30 s after which Kubernetes kills it.',
  },
] as const satisfies readonly OptionSpec[]
