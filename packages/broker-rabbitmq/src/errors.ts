import { WebMQError } from 'webmq-client/protocol'

/**
 * ACCESS_REFUSED, PRECONDITION_FAILED (an exchange of another type), NOT_ALLOWED (a missing vhost), NOT_IMPLEMENTED.
 */
export const REFUSALS = [403, 406, 530, 540]
export const ACCESS_REFUSED = 403
export const PRECONDITION_FAILED = 406

/** AMQP reply code of an error of amqplib: in a field, or in words if it came during the handshake. */
export function replyCodeOf(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined
  const { code } = error as { readonly code?: unknown }
  if (typeof code === 'number') return code
  const [, inWords] = /^Handshake terminated by server: (\d{3}) /.exec(error.message) ?? []
  return inWords === undefined ? undefined : Number(inWords)
}

/** What RabbitMQ takes at most, if it has ended a channel because of a larger message. */
export function maxMessageBytesOf({ message }: Error): number | undefined {
  const [, maxBytes] = /message size \d+ is larger than (?:configured )?max size (\d+)/.exec(message) ?? []
  return maxBytes === undefined ? undefined : Number(maxBytes)
}

export function connectError(cause: unknown, host: string): WebMQError {
  if (cause instanceof WebMQError) return cause
  const text = cause instanceof Error ? cause.message || String((cause as NodeJS.ErrnoException).code) : String(cause)
  const code = isRefusal(cause, text) ? 'E_BROKER_REFUSED' : 'E_BROKER_UNAVAILABLE'
  return new WebMQError(code, { detail: `rabbitmq at ${host}: ${explained(text)}`, cause })
}

function isRefusal(cause: unknown, text: string): boolean {
  const replyCode = replyCodeOf(cause)
  if (replyCode !== undefined) return REFUSALS.includes(replyCode)
  const { code } = cause as { readonly code?: unknown }
  // Trying again does not help with an untrusted certificate, an unreadable file or a missing mechanism.
  return (
    isVhostRefusal(text) ||
    text.startsWith('SASL mechanism') ||
    (typeof code === 'string' && /^(ERR_TLS_|ERR_OSSL_|CERT_|DEPTH_|SELF_|UNABLE_|ENOENT$|EACCES$)/.test(code))
  )
}

/** amqplib does not report why `connection.open` was refused. The vhost is all that this call names. */
function isVhostRefusal(text: string): boolean {
  return text.startsWith('Expected ConnectionOpenOk; got <ConnectionClose')
}

function explained(text: string): string {
  return isVhostRefusal(text) ? 'the virtual host does not exist, or this user may not enter it' : text
}
