import { WebMQError } from 'webmq-client/protocol'

/** Replies that say that this node or its configuration is not wanted: trying again is of no use. */
const REFUSALS = [
  /^(WRONGPASS|NOAUTH|NOPERM)\b/,
  /invalid password/i,
  /^ERR (AUTH|Client sent AUTH)\b/,
  /DB index is out of range|invalid DB index/i,
  /cluster support disabled/,
]
/** Certificates of the server, by the codes of Node. */
const UNTRUSTED = /^(CERT_|ERR_TLS_CERT|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/
/**
 * Replies of a server that cannot now, or is no longer the one to ask: the link is lost, and the next one may do better. Before Redis 7 what a
 * script was told stands behind the place in it. Memory or disk that has run out refuses what would be stored, and nothing else.
 */
const PASSING =
  /^(?:ERR Error running script .*: -)?(LOADING|MASTERDOWN|READONLY|BUSY|CLUSTERDOWN|TRYAGAIN|MOVED|ASK|UNKILLABLE|NOSCRIPT)\b/

/** What a failure of Redis means: `E_BROKER_REFUSED` when it will not change, any other error when it may. */
export function redisError(cause: unknown, hideSecrets: (text: string) => string): Error {
  if (cause instanceof WebMQError) return cause
  const message = hideSecrets(cause instanceof Error ? cause.message : String(cause))
  const code = String((cause as { readonly code?: unknown } | undefined)?.code ?? '')
  if (UNTRUSTED.test(code) || REFUSALS.some((refusal) => refusal.test(message))) {
    return new WebMQError('E_BROKER_REFUSED', { detail: message, cause })
  }
  return new Error(message, { cause })
}

/** Whether an error is the server's answer to a command. */
export function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError'
}

/** Whether a server that answers so is not to be asked any more, for now. */
export function isPassing({ message }: Error): boolean {
  return PASSING.test(message)
}
