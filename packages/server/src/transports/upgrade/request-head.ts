import type { IncomingMessage } from 'node:http'
import { listParts } from '../../base/list-parts.js'

export interface RequestHead {
  readonly method: string
  readonly path: string
  readonly query: string
  /** All headers including repeated ones; names are in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Size on the wire, apart from white space around values. */
  readonly bytes: number
  readonly remoteAddress: string
  /** 0 when the transport cannot tell. */
  readonly remotePort: number
}

export function valuesOf(head: RequestHead, name: string): string[] {
  return head.headers.filter(([other]) => other === name).map(([, value]) => value)
}

/** Non-empty elements of the comma-separated lists under this name. */
export function listOf(head: RequestHead, name: string): string[] {
  return listParts(valuesOf(head, name).join())
}

/** Whether the lists under this name contain `token`; ignores case (RFC 9110 §5.6.1). */
export function hasToken(head: RequestHead, name: string, token: string): boolean {
  return listOf(head, name).some((element) => element.toLowerCase() === token)
}

/** Size of a request head on the wire, apart from white space around values. */
export function headBytes({ method, path, query, headers }: Omit<RequestHead, 'bytes'>): number {
  const lineBytes = `${method} ${path}?${query} HTTP/1.1\r\n\r\n`.length
  return headers.reduce((bytes, [name, value]) => bytes + name.length + value.length + ': \r\n'.length, lineBytes)
}

/** RFC 4291 §2.5.5.2: IPv4 as a socket for both families reports it. */
const MAPPED_IPV4 = /^::ffff:(?=\d+\.)/

export function headOf({ method = 'GET', url = '/', rawHeaders, socket }: IncomingMessage): RequestHead {
  const queryAt = url.indexOf('?')
  const headers: (readonly [string, string])[] = []
  for (let index = 0; index < rawHeaders.length; index += 2) {
    headers.push([rawHeaders[index]?.toLowerCase() ?? '', rawHeaders[index + 1] ?? ''])
  }
  const head = {
    method,
    path: queryAt < 0 ? url : url.slice(0, queryAt),
    query: queryAt < 0 ? '' : url.slice(queryAt + 1),
    headers,
    remoteAddress: socket.remoteAddress?.replace(MAPPED_IPV4, '') ?? '',
    remotePort: socket.remotePort ?? 0,
  }
  return { ...head, bytes: headBytes(head) }
}
