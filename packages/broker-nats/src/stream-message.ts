import type { Msg } from '@nats-io/transport-node'
import { fingerprintOfTime } from 'webmq-server/brokers'

export interface StreamMessage {
  readonly subject: string
  readonly data: Uint8Array
  /** In the stream. */
  readonly sequence: number
  /** Counts what the consumer has sent. */
  readonly deliverySequence: number
  /** When it was stored: Unix time in nanoseconds, digits. */
  readonly time: string
  /** Messages that the consumer has not sent yet. */
  readonly pendingCount: number
}

/**
 * Begins the subject for an answer to a message, up to its sequences; the two words after `$JS.ACK` are missing in most
 * versions (NATS ADR-15): `$JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<times>.<sequence>.<delivery>.<time>.<pending>`.
 */
const LEAD = /^\$JS\.ACK\.(?:[^.]+\.[^.]+\.)?[^.]+\.[^.]+\.\d+\.(?=\d+\.\d+\.\d{19}\.\d)/
/** What follows the lead. */
const REST = /\d{1,15}\.\d{1,15}\.\d{19}\.\d{1,15}(?:\.|$)/y
const DIGITS_BELOW_MS = 6
/** Of the last message: the same for all that a consumer sends once. */
let lead = ''

/**
 * Reads what JetStream says of a message in its reply subject, word by word: to split it takes four times as long.
 * @throws {Error} when it is no message of JetStream.
 */
export function streamMessageOf({ subject, data, reply = '' }: Msg): StreamMessage {
  if (lead === '' || !reply.startsWith(lead)) lead = LEAD.exec(reply)?.[0] ?? ''
  REST.lastIndex = lead.length
  if (lead === '' || !REST.test(reply)) throw new Error('a message of the stream without its sequence')
  const deliveryAt = reply.indexOf('.', lead.length) + 1
  const timeAt = reply.indexOf('.', deliveryAt) + 1
  const pendingAt = reply.indexOf('.', timeAt) + 1
  const end = reply.indexOf('.', pendingAt)
  return {
    subject,
    data,
    sequence: Number(reply.slice(lead.length, deliveryAt - 1)),
    deliverySequence: Number(reply.slice(deliveryAt, timeAt - 1)),
    time: reply.slice(timeAt, pendingAt - 1),
    pendingCount: Number(reply.slice(pendingAt, end < 0 ? undefined : end)),
  }
}

/** When a message was stored: Unix time in milliseconds. */
export function storedAtMs({ time }: StreamMessage): number {
  return Number(time.slice(0, -DIGITS_BELOW_MS))
}

const NS_PER_MS = 1_000_000n
const DIGITS_BELOW_SECOND = 9
const ZERO = 0x30

/**
 * Fingerprint of a message of a stream.
 * @param time When JetStream stored it: Unix time in nanoseconds, digits. No other message was stored at that time.
 */
export function fingerprintOfStored(time: string): number {
  const end = time.length - DIGITS_BELOW_SECOND
  let seconds = 0
  let nanoseconds = 0
  for (let at = 0; at < end; at++) seconds = seconds * 10 + time.charCodeAt(at) - ZERO
  for (let at = Math.max(0, end); at < time.length; at++) nanoseconds = nanoseconds * 10 + time.charCodeAt(at) - ZERO
  return fingerprintOfTime(seconds, nanoseconds)
}

/** Unix time in nanoseconds, digits, of a time as JetStream's answers have it; `undefined` when it is none, or before 1970. */
export function nanosecondsOf(text: string): string | undefined {
  const [, seconds = '', fraction = ''] = /^([^.Z]+)(?:\.(\d{1,9}))?Z$/.exec(text) ?? []
  const ms = Date.parse(`${seconds}Z`)
  if (Number.isNaN(ms) || ms < 0) return undefined
  return String(BigInt(ms) * NS_PER_MS + BigInt(fraction.padEnd(DIGITS_BELOW_SECOND, '0')))
}
