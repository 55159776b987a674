import { option, withPayload } from './encode-field.js'
import { parseCount } from './fields.js'
import type { ClientMessage, ClientVerb, WriteKind } from './messages.js'

// Streams [P-18], apart from the other messages: clients that do not use them do not carry them.

type From<V extends ClientVerb> = Extract<ClientMessage, { verb: V }>

/**
 * What a message of a stream is. `lost`: its server has ended it. `text`: a part of the whole, in the answer to `read`. `close`: the
 * last append, and the end; `delete`: it is gone, both of streams with many writers [P-18.8].
 */
export type StreamKind = WriteKind | 'lost' | 'text' | 'close' | 'delete'

/** How a stream stands. */
export type StreamStatus = 'active' | 'end' | 'fail' | 'stop' | 'lost'

/** What a message of a stream says about itself [P-18.1]: `<stream>:<sequence>:<kind>` on the wire. */
export interface StreamPlace {
  /** Id of the stream. */
  readonly stream: string
  /** 0 for `start`; each later message has the next number, a `beat` that of the last one. */
  readonly sequence: number
  readonly kind: StreamKind
  /** What servers note of a stream with many writers [P-18.8]. */
  readonly mark?: string | undefined
}

/** The JSON in the answer to `read` [P-18.5]; without `stream`, the key has none. */
export interface StreamSummary {
  readonly stream?: string
  /** Of the last message that the text includes. */
  readonly sequence?: number
  readonly status?: StreamStatus
  /** Of the last message that the text does not include: only for a `read` with `since`, else absent. */
  readonly from?: number
  /** As given to `start`. */
  readonly meta?: unknown
  /** As given to `end`; for `fail` the error, `{ message, code? }`. */
  readonly result?: unknown
  /** The beginning of the text is no longer in the log. */
  readonly isCut?: true
}

/** Encodes `stream` [P-18.2]; bytes if its payload is bytes. */
export function encodeStream(message: Omit<From<'stream'>, 'verb'>): string | Uint8Array<ArrayBuffer> {
  const { id, key, stream, sequence, kind, payload } = message
  return withPayload(`stream ${id} ${key} of=${stream} seq=${sequence} kind=${kind}\n`, payload)
}

/** Encodes `read` [P-18.5]. */
export function encodeRead({ id, key, since, stream }: Omit<From<'read'>, 'verb'>): string {
  return `read ${id} ${key}${option('since', since)}${option('of', stream)}`
}

/** The text of a place, as `meta` of a message has it. */
export function formatStreamPlace({ stream, sequence, kind, mark }: StreamPlace): string {
  return `${stream}:${sequence}:${kind}${mark === undefined ? '' : `:${mark}`}`
}

/** Reads the text of a place; `undefined` for one of a later version. */
export function parseStreamPlace(text: string): StreamPlace | undefined {
  const [, stream, number = '', kind, mark] =
    /^([\w-]+):(\d+):(start|append|beat|end|fail|stop|lost|text|close|delete)(?::(.*))?$/.exec(text) ?? []
  const sequence = parseCount(number)
  if (stream === undefined || sequence === undefined) return undefined
  return { stream, sequence, kind: kind as StreamKind, ...(mark === undefined ? undefined : { mark }) }
}
