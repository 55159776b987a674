import { WebMQError } from 'webmq-client/protocol'
import { LogRestart } from 'webmq-server/brokers'

/** Replies after which another attempt would fail too. */
const REFUSALS = [
  /^(WRONGPASS|NOAUTH|NOPERM)\b/,
  /invalid password/i,
  /^ERR (AUTH|Client sent AUTH)\b/,
  /DB index is out of range|invalid DB index/i,
  /cluster support disabled/,
]
/** Node's error codes for certificates that are not trusted. */
const UNTRUSTED = /^(CERT_|ERR_TLS_CERT|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/
/**
 * Replies of a server that cannot answer now, or is no longer the right one: the link is lost, and the next one may
 * succeed. Before Redis 7 a script's error precedes the reply. Full memory or a full disk is not among them: it refuses
 * writes only. `REIGN` is from the log's own script.
 */
const PASSING =
  /^(?:ERR Error running script .*: -)?(LOADING|MASTERDOWN|READONLY|BUSY|CLUSTERDOWN|TRYAGAIN|MOVED|ASK|UNKILLABLE|NOSCRIPT|REIGN)\b/

/** Replies of a server that takes no writes for now: full memory, a disk that cannot be written, too few replicas. */
const NO_WRITES = /(?:^|-)(OOM|MISCONF|NOREPLICAS)\b/

/** What a server of a cluster answers to somebody who takes it for a single one. */
const OF_A_CLUSTER = /(?:^|-)(CROSSSLOT|MOVED)\b/

/** An error of {@link redisError}, of a server whose address says that it is a single one. */
export function singleServerError(error: Error): Error {
  if (error instanceof WebMQError || !OF_A_CLUSTER.test(error.message)) return error
  const detail = `${error.message}: the server is one of a cluster, whose address is redis+cluster://…`
  return new WebMQError('E_BROKER_REFUSED', { detail, cause: error.cause })
}

/** Converts an error of Redis: `E_BROKER_REFUSED` if another attempt would fail too, else any other error. One of ours stays. */
export function redisError(cause: unknown, hideSecrets: (text: string) => string): Error {
  if (cause instanceof WebMQError || cause instanceof LogRestart) return cause
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

/** Whether the server refuses writes for now. It still passes on what is not stored. */
export function refusesWrites({ message }: Error): boolean {
  return NO_WRITES.test(message)
}

/**
 * The error for a message that the server refuses because it takes no writes. Clients see its words, which name neither hosts
 * nor users: so it has no cause.
 */
export function noWritesError(reply: Error): WebMQError {
  return new WebMQError('E_BROKER_UNAVAILABLE', { detail: `it refused the message: ${noWritesReason(reply)}` })
}

/** What the server says, without the script that it has run. */
export function noWritesReason({ message }: Error): string {
  return message.replace(/^.*(?=\b(?:OOM|MISCONF|NOREPLICAS)\b)/s, '').replace(/\.?,? script: .*$/s, '')
}

/** Whether the reply means that the link is useless but the next one may not be. */
export function isPassing({ message }: Error): boolean {
  return PASSING.test(message)
}
