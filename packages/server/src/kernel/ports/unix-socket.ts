const SCHEME = 'unix:'

/** The `remoteAddress` of connections over a Unix socket: their peers have none. */
export const UNIX_PEER = 'unix'

/** The path of the Unix socket that a `host` names, as in `unix:/run/webmq.sock`; `undefined`: it names an address. */
export function unixPathOf(host: string): string | undefined {
  return host.startsWith(SCHEME) ? host.slice(SCHEME.length) : undefined
}
