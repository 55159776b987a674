import { isPromise } from '../../base/maybe-promise.js'
import type { Accepted } from '../../ports/broker.js'
import { formatPosition } from '../../ports/position.js'
import type { Session } from '../session.js'
import type { Handler } from './handler.js'

/** Publishes a message. A request with an id is answered once the broker has accepted the message. */
export const publish: Handler<'publish'> = (session, { publisher }, message, isBinary) => {
  const { id } = message
  const accepted = publisher.publish(session, message, isBinary)
  if (isPromise(accepted)) return accepted.then((accepted) => acknowledge(session, id, accepted))
  acknowledge(session, id, accepted)
}

export function acknowledge(session: Session, id: string | undefined, { position, isDuplicate }: Accepted): void {
  if (id === undefined) return
  if (position === undefined) session.reply({ verb: 'ok', id, duplicate: isDuplicate })
  else session.reply({ verb: 'ok', id, position: formatPosition(position), duplicate: isDuplicate })
}
