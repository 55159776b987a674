import type { PositionBase, ServerMessage } from 'webmq-client/protocol'

/**
 * A server message with its position in full, for test doubles of clients. They treat the position of any `ok` as that
 * of a listen, which makes no difference while the broker's log does not restart.
 */
export function completeMessage(message: ServerMessage, positions: PositionBase): ServerMessage {
  if (message.verb === 'ok') positions.note(message.position)
  if (message.verb !== 'message') return message
  const position = positions.complete(message.position)
  return position === undefined ? message : { ...message, position }
}
