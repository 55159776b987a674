import type { RemoteBrokerOptions } from '../remote/options.js'

export interface MeshAddress {
  /** An IP address or a name, without brackets. */
  readonly host: string
  readonly port: number
}

export interface MeshBrokerOptions extends RemoteBrokerOptions {
  /** Address for the other nodes; port 0 picks a free one. */
  readonly listen: MeshAddress
  /** Addresses of the other nodes; this node may be among them. A name stands for all its addresses. */
  readonly peers: readonly MeshAddress[]
  /** Shared by all nodes of the mesh. Keep it secret. */
  readonly secret?: string | undefined
  readonly logger: Readonly<Record<'debug' | 'info' | 'warn', (fields: object, message: string) => void>>
  /** Finds all addresses of a name, IPv4 and IPv6; default: as the system does, by its hosts file and DNS. */
  readonly resolve?: (host: string) => Promise<readonly string[]>
  /** Interval at which names are resolved again; default 5,000. */
  readonly resolveIntervalMs?: number
  /** Time for a lost link to come back before both nodes report `gap`; default 1,000. */
  readonly relinkMs?: number
}
