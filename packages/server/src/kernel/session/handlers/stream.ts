import { encodeServerMessage, formatStreamPlace } from 'webmq-client/protocol'
import type { StreamReading } from '../../../features/streams/streams.js'
import { encodeWithTexts } from '../../base/json-text.js'
import type { InboundMessage } from '../../ports/broker.js'
import { formatPosition } from '../../ports/position.js'
import { replayFrame } from '../../replay/sender.js'
import type { Handler } from './handler.js'
import { assertMayRead } from './history.js'
import { acknowledge } from './publish.js'

/** Bytes of a text that are folded from the log, or encoded, per unit of work. */
const FOLDED_BYTES_PER_UNIT = 400

/** To begin a watch: a message at a key that this node does not watch costs what a `read` does, too. */
const WATCH_UNITS = 60

/** Writes a message of a stream. */
export const stream: Handler<'stream'> = async (session, { streams }, message, isBinary) => {
  if (!streams.watches.has(message.key)) session.meter.charge(WATCH_UNITS)
  const accepted = await streams.write(session, message, isBinary)
  if (!session.isClosed) acknowledge(session, message.id, accepted)
}

/** Sends the last stream of a key as one message. */
export const read: Handler<'read'> = (session, services, message) => {
  const { replays, streams } = services
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
}

function messagesOf(key: string, { facts, whole, payload, position }: StreamReading): readonly InboundMessage[] {
  const { stream, sequence = 0 } = facts
  if (payload === undefined || stream === undefined) return []
  const isBinary = typeof whole !== 'string'
  const attributes = { stream: formatStreamPlace({ stream, sequence, kind: 'text' }) }
  return [{ key, payload, isBinary, position, attributes }]
}
