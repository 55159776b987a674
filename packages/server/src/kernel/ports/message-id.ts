import { WebMQError } from 'webmq-client/protocol'

/** As in {@link OutboundMessage.messageId}. */
const FORM = /^[A-Za-z0-9_-]{22}$/

/**
 * Checks the id that a broker is given. A node derives all its ids; this guards a broker that somebody calls directly.
 * @throws {WebMQError} `E_MESSAGE_INVALID` for any other form.
 */
export function assertMessageId(messageId: string): void {
  if (!FORM.test(messageId))
    throw new WebMQError('E_MESSAGE_INVALID', { detail: 'the message id for a broker is 22 characters of base64url' })
}
