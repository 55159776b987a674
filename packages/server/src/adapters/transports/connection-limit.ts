import { descriptorLimit } from '../../kernel/base/descriptor-limit.js'

/** Descriptors for everything else: files, brokers, listening sockets, HTTP requests. */
const RESERVED_DESCRIPTORS = 256

/** Resolves `maxConnections`; 0 means as many as the descriptor limit of the process allows, which is the most in any case. */
export function connectionLimit(maxConnections: number): number {
  const most = Math.max(1, descriptorLimit() - RESERVED_DESCRIPTORS)
  return maxConnections > 0 ? Math.min(maxConnections, most) : most
}
