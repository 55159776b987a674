import { listOf, type RequestHead } from './request-head.js'

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
