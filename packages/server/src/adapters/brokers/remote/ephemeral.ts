import type { OutboundMessage } from '../../../kernel/ports/broker.js'
import type { LinkDelivery } from './link.js'

/**
 * The key under which ephemeral messages of logged keys travel. Under their own keys the brokers would log them, or bring
 * them to nobody: a node gets the messages of logged keys from the log alone.
 */
export const EPHEMERAL_KEY = '$webmq.ephemeral'

export function besideTheLog(message: OutboundMessage): OutboundMessage {
  const { key } = message
  return { ...message, key: EPHEMERAL_KEY, attributes: { ...message.attributes, key } }
}

/** The message under its own key; `undefined` when it does not tell one. */
export function unwrapped(delivery: LinkDelivery): LinkDelivery | undefined {
  if (delivery.attributes?.key === undefined) return undefined
  const { key, ...attributes } = delivery.attributes
  return { ...delivery, key, attributes }
}
