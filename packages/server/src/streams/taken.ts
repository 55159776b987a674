import { parseStreamPlace } from 'webmq-client/protocol'
import { copyBytes } from '../base/copy-bytes.js'
import { parseJson } from '../base/parse-json.js'
import type { InboundMessage } from '../ports/broker.js'
import { isRollUp } from '../ports/roll-up.js'
import type { StreamFold } from './fold.js'
import { decodeRollUp } from './roll-ups.js'

/** @returns Whether it has changed the stream. */
export function takeInto(fold: StreamFold, stream: string | undefined, payload: unknown): boolean {
  const place = stream === undefined ? undefined : parseStreamPlace(stream)
  return place !== undefined && fold.take(place, payload)
}

/** A message of the log, or a roll-up. */
export function takeLogged(fold: StreamFold, message: InboundMessage): void {
  const { attributes, payload, isBinary } = message
  if (!isRollUp(attributes)) {
    takeInto(fold, attributes?.stream, payloadOf(message))
    return
  }
  const place = parseStreamPlace(attributes?.stream ?? '')
  const rollUp = decodeRollUp(payload, isBinary)
  if (place !== undefined && rollUp !== undefined) fold.takeRollUp(place.stream, place.sequence, rollUp)
}

/** What another program has written may be anything. */
function payloadOf({ payload, isBinary }: InboundMessage): unknown {
  if (isBinary) return copyBytes(payload)
  if (payload.length === 0) return undefined
  try {
    return parseJson(payload)
  } catch {
    // The fold says that something is missing.
    return undefined
  }
}
