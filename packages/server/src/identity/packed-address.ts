import { unmapped } from './client-address.js'

/**
 * An address in the form that takes the least memory: an IPv4 address as a signed integer, which V8 keeps without an
 * object, and any other text as it is.
 */
export type PackedAddress = number | string

const IPV4 = /^(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})$/
const MAX_BYTE = 255

/** Packs the address of a client. An IPv4 address on an IPv6 socket becomes an IPv4 address. */
export function packAddress(remoteAddress: string): PackedAddress {
  const address = unmapped(remoteAddress)
  const [, ...texts] = IPV4.exec(address) ?? []
  const bytes = texts.map(Number)
  // A copy, because a part of a text keeps all of it in memory: here, the request head.
  if (bytes.length === 0 || bytes.some((byte) => byte > MAX_BYTE)) return Buffer.from(address).toString()
  return bytes.reduce((packed, byte) => (packed << 8) | byte, 0)
}

/** The address as text. */
export function unpackAddress(packed: PackedAddress): string {
  if (typeof packed === 'string') return packed
  return `${packed >>> 24}.${(packed >>> 16) & MAX_BYTE}.${(packed >>> 8) & MAX_BYTE}.${packed & MAX_BYTE}`
}
