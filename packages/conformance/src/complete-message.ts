import type { PositionBase, ServerMessage } from 'webmq-client/protocol'

/**
 * A server message with its position in full, for doubles of clients. They take the position of any `ok` for that of a listen:
 * with a broker whose log does not begin anew, it makes no difference.
 */
export function completeMessage(message: ServerMessage, positions: PositionBase): ServerMessage {
  if (message.verb === 'ok') positions.note(message.position)
  if (message.verb !== 'message') return message
  const position = positions.complete(message.position)
  return position === undefined ? message : { ...message, position }
}
