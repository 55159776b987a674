import { readFileSync } from 'node:fs'

/** Descriptors for everything else: files, brokers, listening sockets, HTTP requests. */
const RESERVED_DESCRIPTORS = 256

/** Resolves `maxConnections`; 0 means as many as the descriptor limit of the process allows, which is the most in any case. */
export function connectionLimit(maxConnections: number): number {
  const most = Math.max(1, descriptorLimit() - RESERVED_DESCRIPTORS)
  return maxConnections > 0 ? Math.min(maxConnections, most) : most
}

function descriptorLimit(): number {
  if (process.platform !== 'linux') return Number.POSITIVE_INFINITY
  const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
}
