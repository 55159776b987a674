import { UNIX_PEER, unixPathOf } from 'webmq-server/ports'
import { headBytes, type RequestHead } from 'webmq-server/transports'
import type { UwsRequest, UwsResponse } from './module.js'

/**
 * Copies all data of a request, which is valid only until its handler returns.
 * @param host That the transport listens on.
 */
export function readHead(request: UwsRequest, response: UwsResponse, host: string): RequestHead {
  const method = request.getCaseSensitiveMethod?.() ?? request.getMethod().toUpperCase()
  const path = request.getUrl()
  const query = request.getQuery() ?? ''
  const headers: (readonly [string, string])[] = []
  request.forEachHeader((name, value) => void headers.push([name, value]))
  const isUnix = unixPathOf(host) !== undefined
  const remoteAddress = isUnix ? UNIX_PEER : addressText(new Uint8Array(response.getRemoteAddress()))
  const head = { method, path, query, headers, remoteAddress, remotePort: response.getRemotePort?.() ?? 0 }
  return { ...head, bytes: headBytes(head) }
}

/** RFC 4291 §2.5.5.2: an IPv4-mapped IPv6 address starts with ten bytes 0 and two bytes 255. */
const MAPPED_IPV4_PREFIX = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255]

function addressText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.')
  if (bytes.length !== 16) return ''
  if (MAPPED_IPV4_PREFIX.every((byte, index) => bytes[index] === byte)) return bytes.subarray(12).join('.')
  const groups = Array.from({ length: 8 }, (_, index) => ((bytes[2 * index] ?? 0) << 8) | (bytes[2 * index + 1] ?? 0))
  // `URL` writes IPv6 addresses in their canonical form (RFC 5952).
  return new URL(`http://[${groups.map((group) => group.toString(16)).join(':')}]`).hostname.slice(1, -1)
}
