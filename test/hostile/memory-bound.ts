import type { AttackCase, FilledPart } from './attack-case.js'

const MIB = 1024 ** 2

/** Bytes that the server's defaults allow for each connection. */
const CONNECTION_BYTES: Partial<Readonly<Record<FilledPart, number>>> = {
  /** `maxOutboxBytes`. */
  outbox: MIB,
  /** Messages that wait until they are handled. */
  inbox: 2 * MIB,
  /** One incomplete message: `maxPayloadBytes` and its header. */
  message: 256 * 1024 + 4_096,
  /** A batch over HTTP of 1 MiB, and what is parsed from it: a list of nothing takes three bytes there, and 32 here. */
  body: 16 * MIB,
  /** Members at 128 keys, with data of 4,096 bytes. */
  presence: 128 * 5 * 1024,
}
/** The connection itself, with 128 listens of half a kilobyte. */
const BARE_CONNECTION_BYTES = 64 * 1024 + 8_192

/** Bytes that the server's defaults allow for all connections together. */
const NODE_BYTES: Partial<Readonly<Record<FilledPart, number>>> = {
  /** `historyMaxBytes`, and as much again for the keys and objects of 10,000 messages. */
  log: 2 * 16 * MIB,
  /** `dedupeMaxIds` of about 160 bytes. */
  messageIds: 16 * MIB,
  /** Texts of streams, and a watch of four kilobytes for each of `maxStreamsPerNode`. */
  streams: 64 * MIB + 10_000 * 4_096,
  /** 65,536 queue groups of about a kilobyte, with their members. */
  groups: 64 * MIB,
  /** 65,536 requests that wait and as many to answer, each of half a kilobyte. */
  requests: 64 * MIB,
}
/**
 * Garbage that V8 has not collected: its young generation at full size, and a step of the old one. In 40 s of
 * `reconnect-storm` the heap in use went from 30 to 100 MiB again and again, and a collection left 13 MiB.
 */
const GARBAGE_BYTES = 96 * MIB

/** Most that the server may grow in a case. Every hostile connection counts with all that the case may fill of it. */
export function memoryBoundBytes({ connections = 1, fills }: AttackCase, clientCount: number): number {
  const sumOf = (parts: Partial<Readonly<Record<FilledPart, number>>>) =>
    fills.reduce((sum, part) => sum + (parts[part] ?? 0), 0)
  const each = BARE_CONNECTION_BYTES + sumOf(CONNECTION_BYTES)
  return GARBAGE_BYTES + sumOf(NODE_BYTES) + connections * clientCount * each
}
