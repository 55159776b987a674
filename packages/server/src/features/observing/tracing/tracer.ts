import type { Context, Span } from '@opentelemetry/api'
import { isNotInstalled } from '../../../kernel/base/load-library.js'
import type { Logger } from '../../../kernel/base/logger.js'
import { isPromise, type MaybePromise } from '../../../kernel/base/maybe-promise.js'
import { unsupportedVersion } from '../../../kernel/base/supported-versions.js'
import type { Accepted, Broker, OutboundMessage } from '../../../kernel/ports/broker.js'

/** The parts of a `traceparent` (W3C Trace Context §3.2). */
export interface TraceParent {
  /** 32 hexadecimal digits in lower case, not all zero. */
  readonly traceId: string
  /** 16 hexadecimal digits in lower case, not all zero: the id of the parent span. */
  readonly spanId: string
  /** One byte; bit 0: sampled. */
  readonly traceFlags: number
}

/** A later version may append fields. We pass on the known ones alone, so nothing longer is read. */
const MAX_CHARS = 128
const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/**
 * Reads a `traceparent` of a client. One that is not valid is ignored, as W3C Trace Context §4.3 asks, and so is one that
 * is longer than 128 characters.
 */
export function parseTraceparent(text: string): TraceParent | undefined {
  if (text.length > MAX_CHARS) return undefined
  const [, version, traceId = '', spanId = '', flags = '', rest] = FORM.exec(text) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) }
}

/** The text of version 00: 55 ASCII characters. */
export function formatTraceparent({ traceId, spanId, traceFlags }: TraceParent): string {
  return `00-${traceId}-${spanId}-${(traceFlags & 0xff).toString(16).padStart(2, '0')}`
}

type Api = typeof import('@opentelemetry/api')

export interface PublishSpan {
  /** Of the span: deliveries are its children. */
  readonly traceparent: string
  /** The broker has accepted the message, or refused it. */
  end(error?: unknown): void
}

/** Names of OpenTelemetry's semantic conventions for messaging. */
const SYSTEM = { 'messaging.system': 'webmq' } as const

/** Spans of publishes and of handlers in the process, by the SDK that the application has registered. */
export class Tracer {
  readonly #api: Api
  readonly #version: string

  constructor(api: Api, version: string) {
    this.#api = api
    this.#version = version
  }

  /** The active span of the caller; `undefined` without one. */
  get active(): string | undefined {
    const span = this.#api.trace.getActiveSpan()
    return span === undefined ? undefined : traceparentOf(span)
  }

  /** Begins the span of a publish. @param parent `undefined` or not valid: the message is not traced. */
  publish(key: string, byteCount: number, parent: string | undefined): PublishSpan | undefined {
    const context = parent === undefined ? undefined : this.#contextOf(parent)
    if (context === undefined) return undefined
    const { SpanKind, SpanStatusCode } = this.#api
    const attributes = {
      ...SYSTEM,
      'messaging.operation.type': 'send',
      'messaging.destination.name': key,
      'messaging.message.body.size': byteCount,
    }
    const span = this.#tracer.startSpan('publish', { kind: SpanKind.PRODUCER, attributes }, context)
    return {
      traceparent: traceparentOf(span),
      end: (error) => {
        // The text may name hosts; the code does not.
        const code = error instanceof Error && 'code' in error ? String(error.code) : 'E_INTERNAL'
        if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: code })
        span.end()
      },
    }
  }

  /** Calls a handler of a message within a span of its own. Errors of the handler are its caller's. */
  handle<T>(pattern: string, key: string, parent: string, handle: () => MaybePromise<T>): MaybePromise<T> {
    const parentContext = this.#contextOf(parent)
    if (parentContext === undefined) return handle()
    const { context, SpanKind, SpanStatusCode, trace } = this.#api
    const attributes = {
      ...SYSTEM,
      'messaging.operation.type': 'process',
      'messaging.destination.name': key,
      'messaging.destination.template': pattern,
    }
    const span = this.#tracer.startSpan('process', { kind: SpanKind.CONSUMER, attributes }, parentContext)
    const fail = (error: unknown): never => {
      span.setStatus({ code: SpanStatusCode.ERROR })
      if (error instanceof Error) span.recordException(error)
      span.end()
      throw error
    }
    try {
      const result = context.with(trace.setSpan(parentContext, span), handle)
      if (isPromise(result)) {
        return result.then((value) => {
          span.end()
          return value
        }, fail)
      }
      span.end()
      return result
    } catch (error) {
      return fail(error)
    }
  }

  /** Looked up each time: the application may register its SDK after the server was created. */
  get #tracer() {
    return this.#api.trace.getTracer('webmq-server', this.#version)
  }

  #contextOf(text: string): Context | undefined {
    const parent = parseTraceparent(text)
    const { ROOT_CONTEXT, trace } = this.#api
    return parent && trace.setSpanContext(ROOT_CONTEXT, { ...parent, isRemote: true })
  }
}

function traceparentOf(span: Span): string {
  return formatTraceparent(span.spanContext())
}

/** A tracer; `undefined` when `@opentelemetry/api`, an optional peer, is not installed, or not in a supported version. */
export async function loadTracer(version: string, logger: Pick<Logger, 'warn'>): Promise<Tracer | undefined> {
  // An application that has it for something else needs no spans of ours.
  const unsupported = unsupportedVersion('@opentelemetry/api')
  if (unsupported !== undefined) {
    logger.warn({ reason: `spans need ${unsupported.reason}` }, 'messages get no spans')
    return undefined
  }
  try {
    return new Tracer(await import('@opentelemetry/api'), version)
  } catch (error) {
    if (isNotInstalled(error, '@opentelemetry/api')) return undefined
    throw error
  }
}

/**
 * Publishes a message as a part of a trace.
 * @param tracer Absent when `@opentelemetry/api` is not installed: the trace is passed on, without a span of this node.
 * @param parent Ignored when it is not valid.
 */
export function tracedPublish(
  broker: Pick<Broker, 'publish'>,
  tracer: Pick<Tracer, 'publish'> | undefined,
  message: OutboundMessage,
  parent: string,
): MaybePromise<Accepted> {
  const span = parseTraceparent(parent) && tracer?.publish(message.key, message.payload.length, parent)
  if (span === undefined) return broker.publish(tracer === undefined ? withTraceparent(message, parent) : message)
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

/** The message with the context of a trace; as it was if the text is none. */
export function withTraceparent(message: OutboundMessage, text: string): OutboundMessage {
  const parent = parseTraceparent(text)
  if (parent === undefined) return message
  return { ...message, attributes: { ...message.attributes, traceparent: formatTraceparent(parent) } }
}
