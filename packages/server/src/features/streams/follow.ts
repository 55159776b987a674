import { assertMayListen } from '../../kernel/identity/access.js'
import type { Replay } from '../../kernel/replay/replay.js'
import type { StreamCursor } from '../../kernel/session/gateway/event-streams.js'
import type { Session } from '../../kernel/session/session.js'
import type { StreamFeeds } from './feed.js'

/**
 * Begins an event stream that follows the stream of a key. Its reader gets the whole of it, or what it does not have, then what
 * comes, then the end. Resolves when it has begun, or the session has ended.
 * @throws {WebMQError} `E_FORBIDDEN`, those of a hook, and of {@link Streams.read}.
 */
export async function followStream(
  feeds: StreamFeeds,
  session: Session,
  key: string,
  cursor: StreamCursor | undefined,
): Promise<void> {
  const { connection, services } = session
  const { hooks, observer, replays } = services
  assertMayListen(session, key)
  await hooks?.listen(session, 'listen', key, true)
  if (session.isClosed) return
  const feed = await feeds.enter(session, key)
  // At once: what comes between the events and the beginning would be missing.
  const readPage = (): Replay => {
    const payload = Buffer.from(feed.eventsFor(cursor))
    return { messages: payload.length === 0 ? [] : [{ key, payload, isBinary: false }], hasMore: false }
  }
  await replays.read(session, readPage, (page) => {
    if (session.isClosed) return
    assertMayListen(session, key)
    const { messages } = replays.take(session, page)
    replays.deliver(session, messages, ({ payload }) => ({ data: payload, isBinary: false }))
    observer?.listened?.(session, key)
    feed.begin(connection)
  })
}
