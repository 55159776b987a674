import { isPromise, type MaybePromise } from '../../base/maybe-promise.js'
import type { Accepted, Broker, OutboundMessage } from '../../ports/broker.js'
import { formatTraceparent, parseTraceparent } from './traceparent.js'
import type { Tracer } from './tracer.js'

/** What {@link tracedPublish} works with. */
export interface TracedPublishContext {
  readonly broker: Pick<Broker, 'publish'>
  /** Absent when `@opentelemetry/api` is not installed: the trace is passed on, without a span of this node. */
  readonly tracer: Pick<Tracer, 'publish'> | undefined
}

/** Publishes a message as a part of a trace. @param parent Ignored when it is not valid. */
export function tracedPublish(
  { broker, tracer }: TracedPublishContext,
  message: OutboundMessage,
  parent: string,
): MaybePromise<Accepted> {
  const valid = parseTraceparent(parent)
  if (valid === undefined) return broker.publish(message)
  if (tracer === undefined) return broker.publish(withTraceparent(message, formatTraceparent(valid)))
  const span = tracer.publish(message.key, message.payload.length, parent)
  if (span === undefined) return broker.publish(message)
  let accepted: MaybePromise<Accepted>
  try {
    accepted = broker.publish(withTraceparent(message, span.traceparent))
  } catch (error) {
    span.end(error)
    throw error
  }
  if (isPromise(accepted)) accepted.then(() => span.end(), span.end)
  else span.end()
  return accepted
}

/** @param traceparent Must be valid. */
export function withTraceparent(message: OutboundMessage, traceparent: string): OutboundMessage {
  return { ...message, attributes: { ...message.attributes, traceparent } }
}
