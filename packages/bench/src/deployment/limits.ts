import { UsageError } from '../exit-codes.js'
import { formatBytes, formatCount } from '../report/format.js'

export interface OfferedLoad {
  readonly connections?: number
  readonly connectsPerSecond?: number
  readonly publishesPerSecond?: number
  readonly deliveriesPerSecond?: number
  readonly deliveredBytesPerSecond?: number
  readonly pingsPerSecond?: number
}

/**
 * A server in production bears this beside its own load. A node of WebMQ on one core delivers about a hundred times as
 * much.
 */
const LIMITS: Readonly<Record<keyof OfferedLoad, { readonly most: number; readonly words: string }>> = {
  connections: { most: 500, words: 'connections' },
  connectsPerSecond: { most: 100, words: 'connects per second' },
  publishesPerSecond: { most: 500, words: 'published messages per second' },
  deliveriesPerSecond: { most: 20_000, words: 'deliveries per second' },
  deliveredBytesPerSecond: { most: 10 * 1024 * 1024, words: 'of payload per second' },
  pingsPerSecond: { most: 1_000, words: 'pings per second' },
}

/** @throws {UsageError} for a load that could harm a server in production. */
export function checkLimits(load: OfferedLoad): void {
  for (const [name, value] of Object.entries(load) as [keyof OfferedLoad, number][]) {
    const { most, words } = LIMITS[name]
    if (value <= most) continue
    const format = name === 'deliveredBytesPerSecond' ? formatBytes : formatCount
    throw new UsageError(
      `${format(value)} ${words}: the limit is ${format(most)}, because the server may be in production; --no-limits lifts it`,
    )
  }
}
