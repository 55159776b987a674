import type { Channel } from 'amqplib'
import { WebMQError } from 'webmq-client/protocol'
import type { HistoryOptions } from 'webmq-server/ports'
import { bindingOf } from './binding-of.js'
import { type AmqpConnection, closeChannel } from './connection.js'
import { PRECONDITION_FAILED, replyCodeOf } from './errors.js'

/** Also of a queue on a server that is down. */
export const NOT_FOUND = 404
/** Estimate of what RabbitMQ stores for a message besides its payload: key, properties, its own annotations. */
const MESSAGE_OVERHEAD_BYTES = 512
/** A stream drops whole segments, the oldest first. It has this many, and one more. */
const SEGMENTS = 8
const MIN_SEGMENT_BYTES = 65_536

export function logQueueOf(namespace: string): string {
  return `${namespace}.log`
}

/**
 * Declares the log, a stream, and binds it to the exchange with the patterns of the rules. An existing one with other
 * bounds is used as it is.
 * @throws {WebMQError} `E_BROKER_REFUSED` when there can be none.
 */
export async function declareLog(
  connection: AmqpConnection,
  namespace: string,
  options: HistoryOptions,
): Promise<void> {
  const queue = logQueueOf(namespace)
  try {
    await onChannel(connection, (channel) =>
      channel.assertQueue(queue, { durable: true, arguments: argumentsOf(options) }),
    )
  } catch (cause) {
    if (replyCodeOf(cause) !== PRECONDITION_FAILED) throw cause
    await onChannel(connection, (channel) => channel.checkQueue(queue)).catch(() => {
      throw new WebMQError('E_BROKER_REFUSED', { detail: `rabbitmq has no stream ${queue}: ${String(cause)}`, cause })
    })
  }
  await onChannel(connection, async (channel) => {
    for (const pattern of options.history.patterns) await channel.bindQueue(queue, namespace, bindingOf(pattern))
  })
}

function argumentsOf(options: HistoryOptions): Readonly<Record<string, string | number>> {
  const { maxAgeMs } = options.history
  const maxBytes = options.historyMaxBytes + options.historyMaxMessages * MESSAGE_OVERHEAD_BYTES
  return {
    'x-queue-type': 'stream',
    'x-max-length-bytes': maxBytes,
    'x-stream-max-segment-size-bytes': Math.max(MIN_SEGMENT_BYTES, Math.ceil(maxBytes / SEGMENTS)),
    ...(maxAgeMs === undefined ? undefined : { 'x-max-age': `${Math.ceil(maxAgeMs / 1_000)}s` }),
  }
}

/** Calls on a channel of its own, because a refusal ends the channel. */
export async function onChannel<T>(connection: AmqpConnection, call: (channel: Channel) => Promise<T>): Promise<T> {
  const channel = await connection.model.createChannel()
  // The call rejects with it too.
  channel.on('error', () => undefined)
  const result = await call(channel)
  closeChannel(channel)
  return result
}
