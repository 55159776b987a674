import type { EventStreams, StreamFollower } from '../../kernel/session/gateway/event-streams.js'
import { encodeSseEvent, encodeSseServerMessage } from './events.js'
import { StreamListens } from './listens.js'
import { readStreamRequest } from './request.js'

interface EventStreamsContext {
  readonly node: string
  readonly version: string
  readonly follower: StreamFollower
}

/** A reader reconnects after this time and up to as much again, by chance: many do not come back at once. */
const RETRY_MS = 1_000

/** Event streams for browsers and others that have no WebSocket. */
export function createEventStreams({ node, version, follower }: EventStreamsContext): EventStreams {
  return {
    read(request, limits) {
      const asked = readStreamRequest(request, limits)
      const { patterns, follows } = asked
      const [key = ''] = patterns
      return {
        patterns,
        assertServed() {
          if (follows !== undefined) follower.assertSupported(key)
        },
        begin(session) {
          if (follows !== undefined) return follower.begin(session, key, follows.cursor)
          return new StreamListens(session, asked).begin()
        },
      }
    },
    welcome(session) {
      const expiresInMs = session.expiresInMs()
      const retryMs = RETRY_MS * (1 + Math.random())
      const data = { session: session.id, node, version, ...(expiresInMs === undefined ? {} : { expiresInMs }) }
      return encodeSseEvent({ name: 'welcome', retryMs, data })
    },
    encode: encodeSseServerMessage,
  }
}
