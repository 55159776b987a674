import { encodeServerMessage } from 'webmq-client/protocol'
import { isPromise } from '../../base/maybe-promise.js'
import { formatPosition } from '../../ports/position.js'
import type { SessionServices } from '../services.js'
import type { Handler } from './handler.js'

/**
 * A server whose event loop hangs stops to answer after this time. The position in an answer is at most so old; no live
 * message was sent since, for that ends the answer [P-9.7].
 */
const PONG_VALID_MS = 1_000

/** Shows that the server is alive [P-9.1], and up to which position live messages have been sent [P-9.7]. */
export const ping: Handler<'ping'> = (session, services) => {
  const { transport, encode = encodeServerMessage } = services
  const position = livePositionOf(services)
  const text = encode(position === undefined ? { verb: 'pong' } : { verb: 'pong', position })
  // The transport gives the same answer to the same text from any connection for this time, if it can.
  transport.prepareAnswer?.('ping', text, PONG_VALID_MS)
  session.replyEncoded(text)
}

/** All live messages up to here have been sent to every connection; `undefined` when that is not known. */
function livePositionOf({ broker, delivery }: Pick<SessionServices, 'broker' | 'delivery'>): string | undefined {
  if (delivery.isTellingGap) return undefined
  const position = broker.position()
  if (!isPromise(position)) return position && formatPosition(position)
  // A remote log may be ahead of what was delivered from it. The answer is not used, so its failure does not matter.
  position.catch(() => undefined)
  return undefined
}
