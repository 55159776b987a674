import { readFileSync } from 'node:fs'

/** Descriptors that the process may open. Infinite where there is no limit, or where the system does not tell. */
export function descriptorLimit(): number {
  if (process.platform !== 'linux') return Number.POSITIVE_INFINITY
  const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
}
