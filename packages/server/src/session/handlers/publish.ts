import type { Accepted } from '../../ports/broker.js'
import { isPromise } from '../../ports/maybe-promise.js'
import { formatPosition } from '../../ports/position.js'
import type { Author } from '../../publishing/author.js'
import type { Publisher } from '../../publishing/publisher.js'
import type { Handler, HandlerContext } from './handler.js'

/** A session that publishes. */
export interface PublishContext extends HandlerContext, Author {
  readonly publisher: Pick<Publisher, 'publish'>
}

/** Publishes a message. A request with an id is answered once the broker has accepted the message. */
export const publish: Handler<'publish', PublishContext> = (session, message, isBinary) => {
  const { id } = message
  const accepted = session.publisher.publish(session, message, isBinary)
  if (isPromise(accepted)) return accepted.then((accepted) => acknowledge(session, id, accepted))
  acknowledge(session, id, accepted)
}

function acknowledge(
  session: Pick<PublishContext, 'reply'>,
  id: string | undefined,
  { position, isDuplicate }: Accepted,
): void {
  if (id === undefined) return
  if (position === undefined) session.reply({ verb: 'ok', id, duplicate: isDuplicate })
  else session.reply({ verb: 'ok', id, position: formatPosition(position), duplicate: isDuplicate })
}
