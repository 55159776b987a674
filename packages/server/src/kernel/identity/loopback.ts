import { BlockList, isIP } from 'node:net'
import { ipv4Of } from '../base/ipv4.js'

const loopback = new BlockList()
// Of IPv4 addresses that are written as IPv6.
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/**
 * Whether only this machine can reach an address: 127.0.0.0/8, `::1`, or the name `localhost` (RFC 6761 §6.3).
 *
 * @param host An address or a name, with or without the brackets of an IPv6 address in a URL.
 */
export function isLoopback(host: string): boolean {
  const address = host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  const v4 = ipv4Of(address)
  if (v4 !== undefined) return v4 >>> 24 === 127
  const family = isIP(address)
  if (family === 0) return address === 'localhost'
  return loopback.check(address, 'ipv6')
}
