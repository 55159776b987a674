import { ipv4Of, ipv4Text } from '../base/ipv4.js'
import { unmapped } from './client-address.js'

/**
 * An address in the form that takes the least memory: an IPv4 address as a signed integer, which V8 keeps without an
 * object, and any other text as it is.
 */
export type PackedAddress = number | string

/** Packs the address of a client. An IPv4 address on an IPv6 socket becomes an IPv4 address. */
export function packAddress(remoteAddress: string): PackedAddress {
  const address = unmapped(remoteAddress)
  const bytes = ipv4Of(address)
  // A copy, because a part of a text keeps all of it in memory: here, the request head.
  return bytes === undefined ? Buffer.from(address).toString() : bytes | 0
}

export function unpackAddress(packed: PackedAddress): string {
  return typeof packed === 'string' ? packed : ipv4Text(packed)
}
