import { option, withPayload } from '../protocol/encode-field.js'
import type { WirePayload } from '../protocol/messages.js'

type Frame = string | Uint8Array<ArrayBuffer>

/** What a message of a stream does. */
export type StreamKind = 'start' | 'append' | 'end' | 'fail' | 'stop' | 'lost' | 'beat' | 'text'

/** The place of a message in its stream. */
export interface StreamStamp {
  readonly id: string
  readonly n: number
  readonly kind: StreamKind
}

/** Encodes one message of a stream. */
export function encodeStream(id: string, key: string, { id: of, n, kind }: StreamStamp, payload: WirePayload): Frame {
  return withPayload(`stream ${id} ${key}${option('of', of)}${option('seq', n)}${option('kind', kind)}\n`, payload)
}

/** Asks for the last stream of a key. */
export function encodeRead(id: string, key: string): string {
  return `read ${id} ${key}`
}

/** Reads the option `stream` of a message; `undefined` if it is of no stream. */
export function stampOf({ stream }: { readonly stream?: string | undefined }): StreamStamp | undefined {
  const [, id = '', n, kind] = /^([\w-]{1,36}):(\d{1,15}):([a-z]+)$/.exec(stream ?? '') ?? []
  return id ? { id, n: Number(n), kind: kind as StreamKind } : undefined
}
