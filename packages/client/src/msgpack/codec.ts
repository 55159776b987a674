import { Packr } from 'msgpackr'
import type { Codec } from '../client-options.js'

/**
 * What every MessagePack library can read, and nothing that only msgpackr can: its records would be smaller, but would be
 * read with `new Function`, which a content security policy without `unsafe-eval` forbids.
 */
const OPTIONS: ConstructorParameters<typeof Packr>[0] = {
  useRecords: false,
  // Small objects have a header of one byte instead of three.
  variableMapSize: true,
  // As in JSON arrays; the alternative is an extension of msgpackr's.
  encodeUndefinedAsNil: true,
}

// Other languages send large integers as such: a number where that is exact, otherwise a bigint. Not in msgpackr's types.
const packr = new Packr(Object.assign(OPTIONS, { int64AsType: 'auto' }))

/**
 * Payloads as MessagePack: pass it as the option `codec`. Every client that shares keys should have it.
 *
 * Says all that JSON can say, and also bytes (`Uint8Array`), dates and bigints of 64 bits. A `Map` arrives as an object,
 * a `Set` as an array, `undefined` as `null`. Throws for typed arrays of another kind: their byte order is the machine's.
 */
export const msgpack: Codec = {
  encode(payload) {
    assertWritable(payload)
    return packr.pack(payload)
  },
  decode: (bytes) => packr.unpack(bytes),
}

/**
 * msgpackr 2.1 gives a typed array as many bytes as it has, but writes its elements into them as if each was one byte; the
 * rest is what stood in that memory before: payloads of others.
 */
function assertWritable(value: unknown): void {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return
  if (ArrayBuffer.isView(value)) throw new TypeError(`${value.constructor.name}: pass its bytes as a Uint8Array`)
  const isCollection = value instanceof Map || value instanceof Set
  for (const member of isCollection ? value.values() : Object.values(value)) assertWritable(member)
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    const json: unknown = value.toJSON()
    if (json !== value) assertWritable(json)
  }
}
