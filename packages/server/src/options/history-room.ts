import { totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'
import { brokerNameOf } from '../ports/broker-address.js'
import { historyRulesOf } from '../ports/history-rules.js'
import type { ResolvedOptions } from './options.js'

/** What a process may take of a machine or container, in bytes. */
export interface Room {
  readonly heapBytes: number
  readonly memoryBytes: number
}

type HistorySize = Pick<ResolvedOptions, 'broker' | 'history' | 'retain' | 'historyMaxMessages' | 'historyMaxBytes'>

/** A key of eight letters in the heap, measured; longer keys take more. Payloads are outside the heap. */
const KEY_BYTES = 34
const MIB = 1024 ** 2

/** Why the log of a node, once it is full, ends the process; `undefined` when nothing says so. */
export function historyDefect(options: HistorySize, room: Room = roomHere()): string | undefined {
  const { broker, historyMaxMessages, historyMaxBytes } = options
  const isEmbedded = typeof broker === 'string' && brokerNameOf(broker) === 'memory'
  if (historyRulesOf(options, isEmbedded).isEmpty || historyMaxMessages === 0 || historyMaxBytes === 0) return undefined
  const heapMib = Math.floor(room.heapBytes / MIB)
  if (historyMaxMessages * KEY_BYTES > room.heapBytes)
    return `historyMaxMessages: the keys of ${historyMaxMessages} messages do not fit the heap, ${heapMib} MiB; keep fewer, or give Node more (NODE_OPTIONS=--max-old-space-size=…)`
  if (historyMaxBytes > room.memoryBytes)
    return `historyMaxBytes: ${historyMaxBytes} is more than the memory here, ${Math.floor(room.memoryBytes / MIB)} MiB`
  return undefined
}

function roomHere(): Room {
  // 0 or more than any machine has: there is no limit.
  const limit = process.constrainedMemory() || Number.POSITIVE_INFINITY
  return { heapBytes: getHeapStatistics().heap_size_limit, memoryBytes: Math.min(limit, totalmem()) }
}
