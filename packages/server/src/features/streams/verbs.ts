import { encodeServerMessage, formatStreamPlace } from 'webmq-client/protocol'
import { encodeWithTexts } from '../../kernel/base/json-text.js'
import { andThen } from '../../kernel/base/maybe-promise.js'
import type { InboundMessage } from '../../kernel/ports/broker.js'
import { formatPosition } from '../../kernel/ports/position.js'
import { replayFrame } from '../../kernel/replay/sender.js'
import type { FeatureVerbs } from '../../kernel/session/handlers/handler.js'
import { assertMayRead } from '../../kernel/session/handlers/history.js'
import { acknowledge } from '../../kernel/session/handlers/publish.js'
import type { StreamReading, Streams } from './streams.js'

/** Bytes of a text that are folded from the log, or encoded, per unit of work. */
const FOLDED_BYTES_PER_UNIT = 400

/** To begin a watch: a message at a key that this node does not watch costs what a `read` does, too. */
const WATCH_UNITS = 60

export function streamVerbs(streams: Streams): Pick<FeatureVerbs, 'stream' | 'read'> {
  return {
    /** Writes a message of a stream. */
    stream: {
      handle: async (session, _, message, isBinary) => {
        if (!streams.watches.has(message.key)) session.meter.charge(WATCH_UNITS)
        const accepted = await streams.write(session, message, isBinary)
        if (!session.isClosed) acknowledge(session, message.id, accepted)
      },
    },
    /** Sends the last stream of a key as one message. */
    read: {
      ask: (hooks, session, message) => {
        assertMayRead(session, session.services, message)
        return andThen(hooks.listen(session, 'history', message.key, true), () => undefined)
      },
      handle: (session, services, message) => {
        const { replays } = services
        const { id, key } = message
        assertMayRead(session, services, message)
        let reading: StreamReading | undefined
        const readPage = async () => {
          // Otherwise a hundred of them would begin in one turn of the event loop.
          replays.spend(WATCH_UNITS)
          reading = await streams.read(key, true, session)
          session.meter.charge((reading.payload?.length ?? 0) / FOLDED_BYTES_PER_UNIT)
          return { messages: messagesOf(key, reading), hasMore: false }
        }
        return replays.read(session, readPage, (page) => {
          if (session.isClosed || reading === undefined) return
          // A new token may have come while the request waited.
          assertMayRead(session, services, message)
          const { facts, position, gap } = reading
          const { messages } = replays.take(session, page)
          const head = { verb: 'ok', id, position: formatPosition(position), gap, replayed: messages.length } as const
          session.replyEncoded(`${encodeServerMessage(head)}\n${encodeWithTexts(facts)}`)
          replays.deliver(session, messages, replayFrame)
        })
      },
    },
  }
}

function messagesOf(key: string, { facts, whole, payload, position }: StreamReading): readonly InboundMessage[] {
  const { stream, sequence = 0 } = facts
  if (payload === undefined || stream === undefined) return []
  const isBinary = typeof whole !== 'string'
  const attributes = { stream: formatStreamPlace({ stream, sequence, kind: 'text' }) }
  return [{ key, payload, isBinary, position, attributes }]
}
