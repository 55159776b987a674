import type { UpgradeId, UpgradeRequest } from '../../ports/transport.js'
import type { UwsRequest, UwsResponse } from './module.js'

/** A copied request head; the original is valid only until its handler returns. */
export interface RequestHead {
  readonly method: string
  readonly path: string
  readonly query: string
  /** All headers including repeated ones; names are in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Size on the wire, apart from white space around values. */
  readonly bytes: number
  readonly remoteAddress: string
  /** 0 when this release of uWebSockets.js does not provide it. */
  readonly remotePort: number
}

/** Copies all data of a request. */
export function readHead(request: UwsRequest, response: UwsResponse): RequestHead {
  const method = request.getCaseSensitiveMethod?.() ?? request.getMethod().toUpperCase()
  const path = request.getUrl()
  const query = request.getQuery() ?? ''
  const headers: (readonly [string, string])[] = []
  let bytes = `${method} ${path}?${query} HTTP/1.1\r\n\r\n`.length
  request.forEachHeader((name, value) => {
    headers.push([name, value])
    bytes += name.length + value.length + ': \r\n'.length
  })
  const remoteAddress = addressText(new Uint8Array(response.getRemoteAddress()))
  return { method, path, query, headers, bytes, remoteAddress, remotePort: response.getRemotePort?.() ?? 0 }
}

/** Values of every header with this name. */
export function valuesOf(head: RequestHead, name: string): string[] {
  return head.headers.filter(([other]) => other === name).map(([, value]) => value)
}

/** Non-empty elements of the comma-separated lists under this name. */
export function listOf(head: RequestHead, name: string): string[] {
  const elements = valuesOf(head, name).flatMap((value) => value.split(','))
  return elements.map((element) => element.trim()).filter((element) => element !== '')
}

/** Whether the lists under this name contain `token`; ignores case (RFC 9110 §5.6.1). */
export function hasToken(head: RequestHead, name: string, token: string): boolean {
  return listOf(head, name).some((element) => element.toLowerCase() === token)
}

/** Converts the request to the type of the port. */
export function upgradeRequest(id: UpgradeId, head: RequestHead): UpgradeRequest {
  const { path, query, remoteAddress, remotePort } = head
  const headers: Record<string, string> = Object.create(null)
  for (const [name, value] of head.headers) {
    const before = headers[name]
    if (before === undefined) headers[name] = value
    else headers[name] = `${before}${name === 'cookie' ? '; ' : ', '}${value}`
  }
  const subprotocols = listOf(head, 'sec-websocket-protocol')
  return { id, path, query, headers, header: (name) => headers[name], subprotocols, remoteAddress, remotePort }
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
