import { isIPv4, isIPv6, SocketAddress } from 'node:net'

/** Who the client is, as a proxy says. */
export interface ProxiedClient {
  readonly address: string
  readonly port: number
}

/** A header of the PROXY protocol, which is followed by what the client has sent. */
export interface ProxyHeader {
  readonly length: number
  /** Absent: the connection is the proxy's own, such as a health check, or is no TCP connection. */
  readonly client?: ProxiedClient
}

/** Longest header that is accepted. An address takes at most 232 bytes, the rest is for what a proxy adds (TLVs). */
const MAX_BYTES = 4_096

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const V1_PREFIX = Buffer.from('PROXY ', 'latin1')
/** The longest line of version 1, its end included. */
const MAX_V1_BYTES = 107

/** Signature, version and command, family and protocol, and the length of what follows. */
const FIXED_BYTES = 16
const LOCAL = 0x20
const PROXY = 0x21
const STREAM = 1
const DATAGRAM = 2
/** Bytes of both addresses and ports, by family: none, IPv4, IPv6, Unix. */
const ADDRESS_BYTES = [0, 12, 36, 216] as const
const TLV_HEAD_BYTES = 3

/**
 * Reads the header at the start of a connection, of version 1 or 2 of the
 * [PROXY protocol](https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt). The native engine reads it in the same way.
 */
export function parseProxyHeader(bytes: Buffer): ProxyHeader | 'incomplete' | 'malformed' {
  if (beginsLike(bytes, SIGNATURE)) return parseBinary(bytes)
  return beginsLike(bytes, V1_PREFIX) ? parseLine(bytes) : 'malformed'
}

function beginsLike(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length)
  return bytes.compare(start, 0, length, 0, length) === 0
}

function parseLine(bytes: Buffer): ProxyHeader | 'incomplete' | 'malformed' {
  const line = bytes.toString('latin1', 0, MAX_V1_BYTES)
  const end = line.indexOf('\r\n')
  if (end < 0) return bytes.length < MAX_V1_BYTES ? 'incomplete' : 'malformed'
  const length = end + 2
  const [protocol, source = '', destination = '', ...ports] = line.slice(V1_PREFIX.length, end).split(' ')
  if (protocol === 'UNKNOWN') return { length }
  const isAddress = protocol === 'TCP4' ? isIPv4 : isIPv6
  const [port = Number.NaN] = ports.map(portOf)
  const isValid =
    (protocol === 'TCP4' || protocol === 'TCP6') &&
    [source, destination].every((text) => isAddress(text) && !text.includes('%')) &&
    ports.length === 2 &&
    ports.every((text) => !Number.isNaN(portOf(text)))
  return isValid ? { length, client: { address: canonical(source), port } } : 'malformed'
}

/** NaN for anything but a port. */
function portOf(text: string): number {
  return /^\d+$/.test(text) && Number(text) <= 0xff_ff ? Number(text) : Number.NaN
}

function parseBinary(bytes: Buffer): ProxyHeader | 'incomplete' | 'malformed' {
  if (bytes.length < FIXED_BYTES) return 'incomplete'
  const [command = 0, familyAndProtocol = 0] = bytes.subarray(SIGNATURE.length)
  const length = FIXED_BYTES + bytes.readUInt16BE(FIXED_BYTES - 2)
  if ((command !== LOCAL && command !== PROXY) || length > MAX_BYTES) return 'malformed'
  if (bytes.length < length) return 'incomplete'
  // What follows is skipped, whatever it is.
  if (command === LOCAL) return { length }
  const [family, protocol] = [familyAndProtocol >> 4, familyAndProtocol & 0xf]
  const addressBytes = ADDRESS_BYTES[family]
  const rest = bytes.subarray(FIXED_BYTES, length)
  if (addressBytes === undefined || protocol > DATAGRAM || rest.length < addressBytes) return 'malformed'
  if (!isWellFormed(rest.subarray(addressBytes))) return 'malformed'
  const isIp = family === 1 || family === 2
  if (!isIp || protocol !== STREAM) return { length }
  const each = family === 1 ? 4 : 16
  return { length, client: { address: addressText(rest.subarray(0, each)), port: rest.readUInt16BE(2 * each) } }
}

/** Whether TLVs fill the bytes. What they say does not matter here. */
function isWellFormed(tlvs: Buffer): boolean {
  let at = 0
  while (at + TLV_HEAD_BYTES <= tlvs.length) at += TLV_HEAD_BYTES + tlvs.readUInt16BE(at + 1)
  return at === tlvs.length
}

function addressText(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join('.')
  return canonical((bytes.toString('hex').match(/.{4}/g) ?? []).join(':'))
}

/** As sockets report addresses (RFC 5952); an IPv4 address within an IPv6 one as IPv4. */
function canonical(address: string): string {
  if (isIPv4(address)) return address
  const text = new SocketAddress({ address, family: 'ipv6' }).address
  return text.startsWith('::ffff:') && text.includes('.') ? text.slice('::ffff:'.length) : text
}
