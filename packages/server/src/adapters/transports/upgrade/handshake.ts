import type { IncomingMessage } from 'node:http'
import { listParts } from '../../../kernel/base/list-parts.js'

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
function listOf(head: RequestHead, name: string): string[] {
  return listParts(valuesOf(head, name).join())
}

/** Whether the lists under this name contain `token`; ignores case (RFC 9110 §5.6.1). */
function hasToken(head: RequestHead, name: string, token: string): boolean {
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

const NAME = 'permessage-deflate'
/** RFC 7692 §7.1.2: a decimal number from 8 to 15, which may be quoted (RFC 6455 §9.1). */
const WINDOW_BITS = /^(?:[89]|1[0-5]|"(?:[89]|1[0-5])")$/

const SERVER_WINDOW = 'server_max_window_bits=15'

export interface ExtensionAnswers {
  /** It can name the window that a client asks for, if it is 15. */
  readonly namesServerWindow: boolean
}

/**
 * The offer to pass to the library: a bare permessage-deflate if one of the client's offers is acceptable, otherwise
 * none. The library answers with both `server_no_context_takeover` and `client_no_context_takeover`.
 *
 * The library must not read the original: uWebSockets.js accepts a smaller `server_max_window_bits` and then uses larger
 * windows; `ws` refuses the handshake because of an unknown parameter.
 */
export function acceptedExtensions(head: RequestHead, answers: ExtensionAnswers): string {
  for (const offer of listOf(head, 'sec-websocket-extensions')) {
    const parameters = parametersOf(offer)
    if (parameters?.every((parameter) => canBeGranted(parameter, answers)) !== true) continue
    return parameters.some(isServerWindow) ? `${NAME}; ${SERVER_WINDOW}` : NAME
  }
  return ''
}

type Parameter = readonly [name: string, value: string | undefined]

/** The parameters of an offer; `undefined` for another extension, or if one is repeated (RFC 7692 §7.1). */
function parametersOf(offer: string): Parameter[] | undefined {
  const [extension, ...texts] = offer.split(';').map((part) => part.trim())
  if (extension?.toLowerCase() !== NAME) return undefined
  const parameters = texts.map((text): Parameter => {
    const [, name = '', value] = /^([^=\s]+)(?:\s*=\s*(.*))?$/.exec(text) ?? []
    return [name, value]
  })
  return new Set(parameters.map(([name]) => name)).size === parameters.length ? parameters : undefined
}

function canBeGranted([name, value]: Parameter, { namesServerWindow }: ExtensionAnswers): boolean {
  if (name === 'client_max_window_bits') return value === undefined || WINDOW_BITS.test(value)
  if (name === 'server_max_window_bits') return namesServerWindow && isServerWindow([name, value])
  return (name === 'server_no_context_takeover' || name === 'client_no_context_takeover') && value === undefined
}

function isServerWindow([name, value]: Parameter): boolean {
  return `${name}=${value?.replaceAll('"', '')}` === SERVER_WINDOW
}
