import { Packr } from 'msgpackr'
import type { Codec } from '../../core/client-options.js'

/**
 * Standard MessagePack only, without msgpackr's records. Records would be smaller, but other libraries cannot read
 * them, and msgpackr reads them with `new Function`, which a content security policy without `unsafe-eval` forbids.
 */
const OPTIONS: ConstructorParameters<typeof Packr>[0] = {
  useRecords: false,
  // Small objects have a header of one byte instead of three.
  variableMapSize: true,
  // As in JSON arrays. The alternative is an extension of msgpackr.
  encodeUndefinedAsNil: true,
}

// Other languages send large integers as 64 bits: a number if it is exact, otherwise a bigint. Not in msgpackr's types.
const packr = new Packr(Object.assign(OPTIONS, { int64AsType: 'auto' }))

/**
 * Payloads as MessagePack: pass it as the option `codec`. All clients that share keys should use it.
 *
 * Supports all JSON values, and also bytes (`Uint8Array`), dates and bigints of 64 bits. A bigint up to 2^53 arrives as a
 * number, a `Map` as an object, a `Set` as an array, `undefined` as `null`. Throws for other typed arrays, because their byte order depends on the
 * machine.
 */
export const msgpack = {
  encode(payload: unknown): Uint8Array {
    assertWritable(payload)
    return packr.pack(payload)
  },
  decode: (bytes: Uint8Array): unknown => packr.unpack(bytes),
} satisfies Codec

/**
 * msgpackr 2.1 writes a typed array with its length in bytes, but only one byte per element. The rest of the output is
 * old memory: payloads of other messages.
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
