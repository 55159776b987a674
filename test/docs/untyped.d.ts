// Packages in the docs without types of their own, or that are not installed here.

declare module 'express' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

  type Handler = (request: IncomingMessage, response: ServerResponse) => unknown
  // biome-ignore lint/style/noDefaultExport: express has one
  export default function express(): RequestListener & { get(paths: readonly string[], handler: Handler): void }
}

declare module 'cbor-x' {
  export function encode(value: unknown): Uint8Array
  export function decode(bytes: Uint8Array): unknown
}
