import { listOf, type RequestHead } from './request.js'

const NAME = 'permessage-deflate'
/** RFC 7692 §7.1.2: a decimal number from 8 to 15, which may be quoted (RFC 6455 §9.1). */
const WINDOW_BITS = /^(?:[89]|1[0-5]|"(?:[89]|1[0-5])")$/

/**
 * The offer to pass to uWebSockets.js: a bare permessage-deflate if one of the client's offers is acceptable, otherwise
 * none. It answers with both `server_no_context_takeover` and `client_no_context_takeover`.
 *
 * uWebSockets.js must not read the original: it accepts a smaller `server_max_window_bits` and then uses larger windows.
 */
export function acceptedExtensions(head: RequestHead): string {
  return listOf(head, 'sec-websocket-extensions').some(isAcceptable) ? NAME : ''
}

/** Whether an offer has only supported parameters, each once (RFC 7692 §7.1). */
function isAcceptable(offer: string): boolean {
  const [name, ...parameters] = offer.split(';').map((part) => part.trim())
  if (name?.toLowerCase() !== NAME) return false
  const names = parameters.map((parameter) => parameter.split('=', 1)[0]?.trimEnd())
  return new Set(names).size === names.length && parameters.every(canBeGranted)
}

function canBeGranted(parameter: string): boolean {
  const [, name = '', value] = /^([^=\s]+)(?:\s*=\s*(.*))?$/.exec(parameter) ?? []
  if (name === 'client_max_window_bits') return value === undefined || WINDOW_BITS.test(value)
  return (name === 'server_no_context_takeover' || name === 'client_no_context_takeover') && value === undefined
}
