import { hasToken, listOf, type RequestHead, valuesOf } from './request-head.js'

/** Why the transport refuses a request itself. */
export interface HandshakeFault {
  readonly status: number
  readonly detail: string
  readonly headers?: Readonly<Record<string, string>>
}

/** RFC 9110 §5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** 16 bytes in base64. The unused bits of the last character are ignored, because some clients set them. */
const KEY = /^[A-Za-z0-9+/]{22}==$/

/**
 * Whether a request asks for a WebSocket: `Upgrade` names it, or there is a key, which scripts cannot set. The key reveals
 * proxies that remove `Upgrade`.
 */
export function asksForWebSocket(head: RequestHead): boolean {
  return hasToken(head, 'upgrade', 'websocket') || valuesOf(head, 'sec-websocket-key').length > 0
}

/** RFC 9110 §15.5.22: the answer to any other request, where nothing else is spoken. */
export const UPGRADE_REQUIRED: HandshakeFault = {
  status: 426,
  detail: 'only WebSocket is spoken here',
  headers: { upgrade: 'websocket' },
}

export function isToken(text: string): boolean {
  return TOKEN.test(text)
}

const HOST_FAULT: HandshakeFault = { status: 400, detail: 'Host is missing or was sent twice' }

/** The error of a request for an event stream; `undefined` when it is valid. */
export function findStreamFault(head: RequestHead): HandshakeFault | undefined {
  if (valuesOf(head, 'host').length !== 1) return HOST_FAULT
  return hasBody(head) ? { status: 400, detail: 'this request has no body' } : undefined
}

/** The error of a WebSocket request by RFC 6455 §4.2.1; `undefined` when it is valid. */
export function findHandshakeFault(head: RequestHead): HandshakeFault | undefined {
  if (head.method !== 'GET')
    return { status: 405, detail: 'a WebSocket handshake is a GET request', headers: { allow: 'GET' } }
  if (!hasToken(head, 'upgrade', 'websocket')) return missing('Upgrade: websocket')
  if (!hasToken(head, 'connection', 'upgrade')) return missing('Connection: Upgrade')
  if (valuesOf(head, 'host').length !== 1) return HOST_FAULT
  const [version, secondVersion] = valuesOf(head, 'sec-websocket-version')
  if (version === undefined || secondVersion !== undefined) {
    return { status: 400, detail: 'Sec-WebSocket-Version is missing or was sent twice' }
  }
  if (version !== '13') {
    // RFC 6455 §4.4 and RFC 9110 §15.5.22
    const headers = { 'sec-websocket-version': '13', upgrade: 'websocket' }
    return { status: 426, detail: 'only version 13 of WebSocket is spoken here', headers }
  }
  const [key, secondKey] = valuesOf(head, 'sec-websocket-key')
  if (key === undefined || secondKey !== undefined || !KEY.test(key)) {
    return { status: 400, detail: 'Sec-WebSocket-Key is not exactly one key of 16 bytes in base64' }
  }
  if (!listOf(head, 'sec-websocket-protocol').every(isToken)) {
    return { status: 400, detail: 'Sec-WebSocket-Protocol is not a list of tokens' }
  }
  return hasBody(head) ? { status: 400, detail: 'a WebSocket handshake has no body' } : undefined
}

function hasBody(head: RequestHead): boolean {
  return valuesOf(head, 'transfer-encoding').length > 0 || valuesOf(head, 'content-length').some((n) => n !== '0')
}

function missing(header: string): HandshakeFault {
  return { status: 400, detail: `${header} is missing: does a proxy in between remove it?` }
}
