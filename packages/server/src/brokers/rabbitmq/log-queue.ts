import { WebMQError } from 'webmq-client/protocol'
import type { HistoryOptions } from '../../ports/history-rules.js'
import { type AmqpConnection, called } from './amqp-connection.js'
import { replyCodeOf } from './errors.js'

const PRECONDITION_FAILED = 406
/** What RabbitMQ writes for a message beside its payload, roughly: key, properties, its own annotations. */
const MESSAGE_OVERHEAD_BYTES = 512
/** A stream lets go of whole segments, the oldest; it has this many, and one more. */
const SEGMENTS = 8
const MIN_SEGMENT_BYTES = 65_536

/** The queue that is the log. */
export function logQueueOf(namespace: string): string {
  return `${namespace}.log`
}

/** Bytes that are written before the stream begins another segment. */
export function segmentBytesOf(options: HistoryOptions): number {
  return Math.max(MIN_SEGMENT_BYTES, Math.ceil(maxBytesOf(options) / SEGMENTS))
}

/**
 * Declares the log, a stream, and binds it to the exchange with the patterns of the rules. One that is there with other bounds is taken as it is.
 * @throws {WebMQError} `E_BROKER_REFUSED` when there can be none.
 */
export async function declareLog(
  connection: AmqpConnection,
  namespace: string,
  options: HistoryOptions,
): Promise<void> {
  const queue = logQueueOf(namespace)
  const refused = (cause: unknown) =>
    new WebMQError('E_BROKER_REFUSED', { detail: `rabbitmq has no stream ${queue}: ${String(cause)}`, cause })
  try {
    await onChannel(connection, (channel, done) => {
      channel.assertQueue(queue, { durable: true, arguments: argumentsOf(options) }, done)
    })
  } catch (cause) {
    if (replyCodeOf(cause) !== PRECONDITION_FAILED) throw cause
    await onChannel(connection, (channel, done) => channel.checkQueue(queue, done)).catch(() => {
      throw refused(cause)
    })
  }
  for (const pattern of options.history.patterns) {
    await onChannel(connection, (channel, done) => channel.bindQueue(queue, namespace, pattern, {}, done))
  }
}

function argumentsOf(options: HistoryOptions): Readonly<Record<string, string | number>> {
  const { maxAgeMs } = options.history
  return {
    'x-queue-type': 'stream',
    'x-max-length-bytes': maxBytesOf(options),
    'x-stream-max-segment-size-bytes': segmentBytesOf(options),
    ...(maxAgeMs === undefined ? undefined : { 'x-max-age': `${Math.ceil(maxAgeMs / 1_000)}s` }),
  }
}

function maxBytesOf({ historyMaxMessages, historyMaxBytes }: HistoryOptions): number {
  return historyMaxBytes + historyMaxMessages * MESSAGE_OVERHEAD_BYTES
}

type ChannelCall = (
  channel: Awaited<ReturnType<AmqpConnection['openChannel']>>,
  done: (error: Error | null, result: unknown) => void,
) => void

/** One call on a channel of its own, because a refusal ends the channel. */
async function onChannel(connection: AmqpConnection, call: ChannelCall): Promise<void> {
  const channel = await connection.openChannel()
  // The call tells it too.
  channel.on('error', () => undefined)
  await called<unknown>((done) => call(channel, done))
  await called<unknown>((done) => channel.close((error) => done(error ?? null, undefined)))
}
