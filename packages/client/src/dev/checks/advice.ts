import type { CoreMessage } from '../../protocol/decode-server.js'

/** A message names no more. A token may have a thousand. */
const MAX_SHOWN_PATTERNS = 5

/** What a page says of itself in its token. The server has checked it; here it is only shown. */
interface Claims {
  readonly sub?: unknown
  readonly webmq?: { readonly grants?: readonly { readonly keys?: unknown; readonly allow?: unknown }[] }
}

/** An error of the server, with what a developer may do about it. */
export function withAdvice(message: CoreMessage, token: string | undefined): CoreMessage {
  if (message.verb !== 'error') return message
  const advice = adviceOf(message.code, message.message, token)
  return advice === undefined ? message : { ...message, message: `${message.message}; ${advice}` }
}

function adviceOf(code: string, text: string, token: string | undefined): string | undefined {
  if (code === 'E_LISTEN_LIMIT') return 'does each effect and each component end the listens that it begins?'
  if (code === 'E_PAYLOAD_TOO_LARGE') return 'the option --max-payload of the server sets the limit'
  return code === 'E_FORBIDDEN' ? grantsOf(text, token) : undefined
}

/** Who the client is, and what the token grants with which it connected: "ada may listen: chat.#, lobby". */
function grantsOf(text: string, token: string | undefined): string | undefined {
  const [, action] = / (listen|publish|presence) \S/.exec(text) ?? []
  if (action === undefined) return undefined
  if (token === undefined) return 'the client has no token'
  const claims = claimsOf(token)
  if (claims === undefined) return undefined
  const who = typeof claims.sub === 'string' ? claims.sub : 'a token without `sub`'
  const { grants } = claims.webmq ?? {}
  const patterns = (Array.isArray(grants) ? grants : [])
    .filter((grant) => Array.isArray(grant?.allow) && grant.allow.includes(action))
    .flatMap(({ keys }) => keys)
  const rest = patterns.length > MAX_SHOWN_PATTERNS ? ` and ${patterns.length - MAX_SHOWN_PATTERNS} more` : ''
  const shown = `: ${patterns.slice(0, MAX_SHOWN_PATTERNS).join(', ')}${rest}`
  const what = action === 'presence' ? 'be present at' : action
  // A later token may grant something else.
  return `by the token of its login, ${who} may ${what}${patterns.length > 0 ? shown : ' nothing'}`
}

/** @returns `undefined` of what is no JWT. */
function claimsOf(token: string): Claims | undefined {
  try {
    const [, body = ''] = token.split('.')
    const bytes = Uint8Array.from(atob(body.replace(/-/g, '+').replace(/_/g, '/')), (char) => char.charCodeAt(0))
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes))
    // Of another server it may be anything; then nothing is said.
    return typeof claims === 'object' && claims !== null ? claims : undefined
  } catch {
    return undefined
  }
}
