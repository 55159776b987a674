import type { HostileCase } from '../../hostile/hostile-case.js'

const MIB = 1024 ** 2

/**
 * Bytes that one connection may hold by the server's defaults: its outbox, the messages that wait to be handled, one
 * that is not complete, and a share for listens, presence and buffers.
 */
const CONNECTION_BYTES = {
  outbox: MIB,
  inbox: 2 * MIB,
  message: 256 * 1024 + 4_096,
  rest: 128 * 1024,
} as const

/** Bytes that a node may hold for all connections together, by the server's defaults. */
const NODE_BYTES = {
  /** `historyMaxBytes`, and as much again for the keys and objects of 10,000 messages. */
  log: 2 * 16 * MIB,
  /** `dedupeMaxIds` of about 160 bytes. */
  messageIds: 16 * MIB,
  /** Garbage that V8 has not collected: its young generation at full size, and as much of the old one. */
  garbage: 64 * MIB,
} as const

/** Most that the server may grow in a case, in bytes. Every hostile connection counts with all that it may hold. */
export function memoryBoundBytes({ connections = 1 }: HostileCase, clientCount: number): number {
  const each = Object.values(CONNECTION_BYTES).reduce((sum, bytes) => sum + bytes, 0)
  const node = Object.values(NODE_BYTES).reduce((sum, bytes) => sum + bytes, 0)
  return node + connections * clientCount * each
}
