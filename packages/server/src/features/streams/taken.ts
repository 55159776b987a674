import { parseStreamPlace } from 'webmq-client/protocol'
import { copyBytes } from '../../kernel/base/copy-bytes.js'
import type { InboundMessage } from '../../kernel/ports/broker.js'
import { isRollUp } from '../../kernel/ports/roll-up.js'
import type { StreamFold } from './fold.js'
import { decodeRollUp } from './roll-ups.js'

/** A message with a payload of its own. @returns Whether it has changed the stream. */
export function takeInto(fold: StreamFold, { payload, isBinary, attributes = {} }: InboundMessage): boolean {
  const { stream, owner, checksum } = attributes
  const place = stream === undefined ? undefined : parseStreamPlace(stream)
  return place !== undefined && fold.take(place, { payload, isBinary, owner, checksum })
}

/** A message of the log, or a roll-up. Its payload is lent. */
export function takeLogged(fold: StreamFold, message: InboundMessage): void {
  const { attributes, payload, isBinary } = message
  if (!isRollUp(attributes)) {
    // A text is parsed at once.
    takeInto(fold, isBinary ? { ...message, payload: copyBytes(payload) } : message)
    return
  }
  const place = parseStreamPlace(attributes?.stream ?? '')
  const rollUp = decodeRollUp(payload, isBinary)
  if (place !== undefined && rollUp !== undefined) fold.takeRollUp(place.stream, place.sequence, rollUp)
}
