/** A copy, also of a `Buffer`, whose own `slice` is a view: the bytes of transports and callers are borrowed. */
export function copyBytes(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes)
}
