import { UsageError } from '../exit-codes.js'
import type { ConnectOptions } from '../loadgen/events.js'
import type { TargetSettings } from './messages.js'

/** Abilities of targets; scenarios name those that they need. */
export type TargetAbility =
  /** Publishes to all connections. */
  | 'fan-out'
  /** Checks a token before it takes a connection. */
  | 'tokens'
  /** Answers a message with a message. */
  | 'ping'
  /** Counts the messages that it has processed. */
  | 'inbound'
  /** Accepts binary messages. */
  | 'binary'
  /** permessage-deflate. */
  | 'compression'
  /** Handles connections that do not read. */
  | 'slow-readers'
  /** Routes keys to patterns. */
  | 'patterns'
  /** Publishes to some connections, which have asked for it. */
  | 'rooms'
  /** Delivers messages published on another node. */
  | 'many-nodes'
  /** Serves TLS. */
  | 'tls'

/** The protocol of a target. */
export interface TargetWire {
  readonly connect: Pick<ConnectOptions, 'path' | 'subprotocol' | 'ready' | 'replies'>
  /** What a new connection sends to receive published messages, and the start of the answer; absent: nothing. */
  readonly listen?: { readonly texts: readonly string[]; readonly awaited: string }
  /** What it sends then to receive what is published to a room, whose number stands for `$GROUP`. */
  readonly room?: { readonly texts: readonly string[]; readonly awaited: string }
  readonly ping: { readonly text: string; readonly await: string }
  /** The message that publishes a payload. */
  inbound(payload: Uint8Array): Uint8Array
}

/** One server that can be measured. */
export interface TargetSpec {
  readonly name: string
  /** Its program: a script of `targets/`, or a program of the load generator's crate. */
  readonly program: 'webmq.mjs' | 'by-hand.mjs' | 'uws.mjs' | 'ws.mjs' | 'socketio.mjs' | 'raw'
  readonly settings: Readonly<Record<string, unknown>> & Partial<TargetSettings>
  readonly abilities: readonly TargetAbility[]
  readonly wire: TargetWire
  /** Messages per turn of a flood, instead of the scenario's number; 0: as many as one write carries. */
  readonly floodBatch?: number
}

const plain: TargetWire = {
  connect: { path: '/', ready: 'text:ready' },
  ping: { text: 'ping', await: 'pong' },
  inbound: (payload) => payload,
}

/** webmq.v1. */
export const webmq: TargetWire = {
  connect: { path: '/ws', subprotocol: 'webmq.v1', ready: 'welcome' },
  listen: { texts: ['listen 1 bench.tick'], awaited: 'ok 1' },
  room: { texts: ['listen 2 bench.room.$GROUP'], awaited: 'ok 2' },
  ping: { text: 'ping', await: 'pong' },
  // A key without listeners, because only inbound messages are measured.
  inbound: (payload) => Buffer.concat([Buffer.from('publish - bench.in\n'), payload]),
}

const socketio: TargetWire = {
  // Engine.IO sends "open" (0) and pings (2); Socket.IO answers a CONNECT (40) with its own.
  connect: { path: '/socket.io/?EIO=4&transport=websocket', ready: 'text:0', replies: { 2: '3' } },
  listen: { texts: ['40'], awaited: '40' },
  room: { texts: ['42["join","bench.room.$GROUP"]'], awaited: '42["joined"' },
  ping: { text: '42["ping"]', await: '42["pong"]' },
  inbound: (payload) => Buffer.concat([Buffer.from('42["in",'), payload, Buffer.from(']')]),
}

const commonAbilities = ['fan-out', 'tokens', 'ping', 'inbound', 'compression', 'slow-readers', 'tls'] as const
const socketioAbilities = [...commonAbilities, 'rooms'] as const
const serverAbilities = [...commonAbilities, 'binary'] as const
const webmqAbilities = [...serverAbilities, 'rooms', 'patterns', 'many-nodes'] as const

/** What a server in production has: tokens, metrics, an audit log, and limits, which no load of the bench reaches. */
const GUARDS = {
  jwtSecret: 'known to the bench, and used for nothing else',
  metrics: 'all',
  auditLog: '/dev/null',
  auditLevel: 'listens',
  maxPublishesPerSecond: 1_000_000,
  maxPublishBytesPerSecond: 10_000_000_000,
  maxPublishesPerSecondPerUser: 1_000_000,
  maxPublishBytesPerSecondPerUser: 10_000_000_000,
  maxListensPerUser: 100_000,
} as const

export const targetSpecs: readonly TargetSpec[] = [
  {
    name: 'webmq-native',
    program: 'webmq.mjs',
    settings: { transport: 'native' },
    abilities: webmqAbilities,
    wire: webmq,
  },
  {
    name: 'webmq-guarded',
    program: 'webmq.mjs',
    settings: { transport: 'native', ...GUARDS },
    abilities: webmqAbilities,
    wire: webmq,
  },
  {
    name: 'webmq-urgent',
    program: 'webmq.mjs',
    settings: { transport: 'native', urgent: ['#'] },
    abilities: webmqAbilities,
    wire: webmq,
  },
  { name: 'webmq-ws', program: 'webmq.mjs', settings: { transport: 'ws' }, abilities: webmqAbilities, wire: webmq },
  { name: 'webmq-uws', program: 'webmq.mjs', settings: { transport: 'uws' }, abilities: webmqAbilities, wire: webmq },
  // Measured: 128 messages in one write per connection are its fastest way, with 10 connections as with 5,000.
  { name: 'uws', program: 'uws.mjs', settings: {}, abilities: serverAbilities, floodBatch: 128, wire: plain },
  {
    name: 'uws-rjweb',
    program: 'uws.mjs',
    settings: { uwsPackage: 'uWebSockets.js' },
    abilities: serverAbilities,
    floodBatch: 128,
    wire: plain,
  },
  { name: 'ws', program: 'ws.mjs', settings: {}, abilities: serverAbilities, wire: plain },
  { name: 'socketio', program: 'socketio.mjs', settings: {}, abilities: socketioAbilities, wire: socketio },
  {
    name: 'raw',
    program: 'raw',
    settings: { mode: 'log' },
    abilities: ['fan-out', 'ping'],
    // The physical limit: only the size of a write matters.
    floodBatch: 0,
    wire: { ...plain, connect: { path: '/', ready: 'upgrade' } },
  },
  {
    name: 'raw-loop',
    program: 'raw',
    settings: { mode: 'loop' },
    abilities: ['fan-out', 'ping'],
    wire: { ...plain, connect: { path: '/', ready: 'upgrade' } },
  },
]

export interface TargetChoice {
  /** As written: `webmq-native:2`. */
  readonly label: string
  readonly spec: TargetSpec
  /** I/O threads; absent: the target's default. */
  readonly threads?: number
  /** Name in messages; absent: that of a target. */
  readonly title?: string
}

/**
 * Reads `webmq-native`, or `webmq-native:2` for two I/O threads.
 * @throws {UsageError} for an unknown target, or one without a choice of threads.
 */
export function parseTarget(label: string): TargetChoice {
  const [name, count, ...rest] = label.split(':')
  const spec = targetSpecs.find((known) => known.name === name)
  if (spec === undefined || rest.length > 0) {
    throw new UsageError(
      `there is no target '${label}'; there are ${targetSpecs.map((known) => known.name).join(', ')}`,
    )
  }
  if (count === undefined) return { label, spec }
  const threads = Number(count)
  if (spec.name !== 'webmq-native') throw new UsageError(`target '${label}': only webmq-native has threads to choose`)
  if (!Number.isInteger(threads) || threads < 1 || threads > 64) {
    throw new UsageError(`target '${label}': threads are 1 to 64`)
  }
  return { label, spec, threads }
}
