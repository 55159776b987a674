import { BlockList, isIP, isIPv4 } from 'node:net'
import { isLoopback } from './loopback.js'

/** Addresses of proxies and of machines of one's own: RFC 1918, RFC 6598, RFC 3927, RFC 4193, RFC 4291 §2.5.6. */
const near = new BlockList()
near.addSubnet('127.0.0.0', 8, 'ipv4')
near.addSubnet('10.0.0.0', 8, 'ipv4')
near.addSubnet('172.16.0.0', 12, 'ipv4')
near.addSubnet('192.168.0.0', 16, 'ipv4')
near.addSubnet('100.64.0.0', 10, 'ipv4')
near.addSubnet('169.254.0.0', 16, 'ipv4')
near.addAddress('::1', 'ipv6')
near.addSubnet('fc00::', 7, 'ipv6')
near.addSubnet('fe80::', 10, 'ipv6')

/** Groups of an IPv6 address that one customer of a network gets as a whole. */
const PREFIX_GROUPS = 4

/** An IPv4 address that arrived on an IPv6 socket, as an IPv4 address (RFC 4291 §2.5.5.2). Others stay as they are. */
export function unmapped(address: string): string {
  const [, mapped] = /^::ffff:([\d.]+)$/i.exec(address) ?? []
  return mapped !== undefined && isIPv4(mapped) ? mapped : address
}

/** Headers that proxies add. Such a request comes from the proxy's address, but from another client. */
const FORWARDING_HEADERS = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'] as const

/**
 * Whether a request comes from this machine: from a loopback address, and not through a proxy that says so.
 * @param header Returns one header, by its name in lower case.
 */
export function isFromThisMachine(remoteAddress: string, header: (name: string) => unknown): boolean {
  return isLoopback(unmapped(remoteAddress)) && FORWARDING_HEADERS.every((name) => header(name) === undefined)
}

/**
 * The text under which connections of one client address are counted: an IPv4 address, or the /64 of an IPv6 address.
 *
 * @returns `undefined` for loopback and private addresses, because many clients share those through a proxy, and for
 *   what is no address.
 */
export function countedAddress(remoteAddress: string): string | undefined {
  const [address = ''] = unmapped(remoteAddress).split('%')
  const family = isIP(address)
  if (family === 0 || near.check(address, family === 6 ? 'ipv6' : 'ipv4')) return undefined
  return family === 4 ? address : prefixOf(address)
}

function prefixOf(address: string): string {
  const [head = '', tail = ''] = address.toLowerCase().split('::')
  const groups = head === '' ? [] : head.split(':')
  if (address.includes('::')) {
    const last = tail === '' ? [] : tail.split(':')
    // An IPv4 address at the end stands for two groups.
    const missing = 8 - groups.length - last.length - (tail.includes('.') ? 1 : 0)
    for (let index = 0; index < missing; index++) groups.push('0')
    groups.push(...last)
  }
  const prefix = groups.slice(0, PREFIX_GROUPS).map((group) => Number.parseInt(group, 16).toString(16))
  return `${prefix.join(':')}::/64`
}
