import type { StreamContent } from '../src/features/streams/fold.js'

/** What a message of a stream has: a value as JSON, bytes, or nothing. */
export function contentOf(value: unknown): StreamContent {
  if (value instanceof Uint8Array) return { payload: value, isBinary: true }
  return { payload: Buffer.from(value === undefined ? '' : JSON.stringify(value)), isBinary: false }
}
