import { BlockList, isIP } from 'node:net'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/**
 * Whether only this machine can reach an address: 127.0.0.0/8, `::1`, or the name `localhost` (RFC 6761 §6.3).
 *
 * @param host An address or a name, with or without the brackets of an IPv6 address in a URL.
 */
export function isLoopback(host: string): boolean {
  const address = host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  const family = isIP(address)
  if (family === 0) return address === 'localhost'
  return loopback.check(address, family === 6 ? 'ipv6' : 'ipv4')
}
