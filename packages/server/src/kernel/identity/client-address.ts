import { ipv4Of, ipv4Text } from '../base/ipv4.js'
import { UNIX_PEER } from '../ports/unix-socket.js'

// Runs for every connection, on addresses as sockets report them. `BlockList` of Node takes six times as long.

/** Groups of an IPv6 address that one customer of a network gets as a whole. */
const PREFIX_GROUPS = 4

/** An IPv4 address that arrived on an IPv6 socket, as an IPv4 address (RFC 4291 §2.5.5.2). Others stay as they are. */
export function unmapped(address: string): string {
  return address.startsWith(':') && /^::ffff:[\d.]+$/i.test(address) ? address.slice('::ffff:'.length) : address
}

/** Whether the address of a socket is of this machine: a loopback address, or none, for a Unix socket. */
export function isLoopbackAddress(remoteAddress: string): boolean {
  const address = unmapped(remoteAddress)
  return address.startsWith('127.') || address === '::1' || address === UNIX_PEER
}

/**
 * The text under which connections of one client address are counted: an IPv4 address, or the /64 of an IPv6 address.
 *
 * @returns `undefined` for loopback and private addresses, because many clients share those through a proxy, and for
 *   what is no address.
 */
export function countedAddress(remoteAddress: string): string | undefined {
  const address = unmapped(remoteAddress)
  if (address.includes(':')) {
    const groups = prefixOf(address.toLowerCase())
    return isPrivateV6(address, groups[0] ?? 0) ? undefined : `${groups.map((it) => it.toString(16)).join(':')}::/64`
  }
  const bytes = ipv4Of(address)
  // Put together anew, because a part of a text keeps all of it in memory: here, the request head.
  return bytes === undefined || isPrivateV4(bytes >>> 24, (bytes >>> 16) & 255) ? undefined : ipv4Text(bytes)
}

/** Loopback, RFC 1918, RFC 6598 and RFC 3927. */
function isPrivateV4(first: number, second: number): boolean {
  if (first === 127 || first === 10) return true
  if (first === 172) return second >= 16 && second < 32
  if (first === 192) return second === 168
  if (first === 100) return second >= 64 && second < 128
  return first === 169 && second === 254
}

/** Loopback, RFC 4193 and RFC 4291 §2.5.6. */
function isPrivateV6(address: string, first: number): boolean {
  return address === '::1' || (first & 0xfe_00) === 0xfc_00 || (first & 0xff_c0) === 0xfe_80
}

function prefixOf(address: string): readonly number[] {
  const [head = '', tail] = address.split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail !== undefined) {
    const last = tail === '' ? [] : tail.split(':')
    // An IPv4 address at the end stands for two groups.
    const missing = 8 - groups.length - last.length - (tail.includes('.') ? 1 : 0)
    for (let index = 0; index < missing; index++) groups.push('0')
    groups.push(...last)
  }
  return groups.slice(0, PREFIX_GROUPS).map((group) => Number.parseInt(group, 16))
}

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
