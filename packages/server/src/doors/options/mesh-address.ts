import { invalidOption } from '../../kernel/base/invalid-option.js'

const MESH_DEFAULT_PORT = 7400

/** {@link MESH_DEFAULT_PORT} on loopback, which other machines cannot reach. */
export const MESH_DEFAULT_LISTEN = `127.0.0.1:${MESH_DEFAULT_PORT}`

export interface HostAndPort {
  /** An IP address or a name, without the brackets of an IPv6 address in a URL. */
  readonly host: string
  readonly port: number
}

/** Reads `host:port`, `host` or `[address]:port`. @returns `undefined` for any other text. */
export function parseHostAndPort(text: string): HostAndPort | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s/:@,[\]]+))(?::(\d{1,5}))?$/.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = match?.[3] === undefined ? MESH_DEFAULT_PORT : Number(match[3])
  return host === undefined || port > 65_535 ? undefined : { host, port }
}

/**
 * Reads the address of a mesh, `mesh://host:port,host:port`. A name may resolve to several nodes.
 * @returns `undefined` for any other text.
 */
export function parseMeshAddress(address: string): readonly HostAndPort[] | undefined {
  const list = /^mesh:\/\/([^/]+)\/?$/.exec(address)?.[1]?.split(',')
  const addresses = list?.map(parseHostAndPort)
  return addresses?.every((address) => address !== undefined && address.port > 0) === true
    ? (addresses as readonly HostAndPort[])
    : undefined
}

/**
 * The addresses of the nodes of a mesh, and the one on which this node listens.
 * @param listen `host:port`; default {@link MESH_DEFAULT_LISTEN}.
 * @throws {WebMQError} `E_OPTION_INVALID`.
 */
export function meshPlacesOf(
  address: string,
  listen = MESH_DEFAULT_LISTEN,
): { readonly peers: readonly HostAndPort[]; readonly listen: HostAndPort } {
  const peers = parseMeshAddress(address)
  const listenAddress = parseHostAndPort(listen)
  if (peers !== undefined && listenAddress !== undefined) return { peers, listen: listenAddress }
  const detail =
    peers === undefined
      ? 'broker: not a mesh address; use mesh://host:port,host:port, or one name that resolves to all nodes'
      : 'mesh.listen: not a host with a port'
  throw invalidOption(detail)
}
