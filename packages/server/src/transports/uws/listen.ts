import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { WebMQError } from 'webmq-client/protocol'
import type { TransportAddress } from '../../ports/transport.js'
import type { UwsApp, UwsListenSocket, UwsModule } from './module.js'

/** A bound address and its socket. */
export interface UwsListening {
  readonly socket: UwsListenSocket
  readonly address: TransportAddress
}

/**
 * Binds exclusively: by default uWebSockets.js shares a port with any process that binds it the same way, and nobody is told.
 * @throws {WebMQError} `E_ADDRESS_IN_USE`, `E_ADDRESS_UNAVAILABLE`.
 */
export async function listen(app: UwsApp, module: UwsModule, host: string, port: number): Promise<UwsListening> {
  // The callback comes before `listen` returns.
  let bound: UwsListenSocket | false = false
  app.listen(host, port, module.LIBUS_LISTEN_EXCLUSIVE_PORT, (socket) => {
    bound = socket
  })
  if (bound === false) throw await bindError(host, port)
  return { socket: bound, address: { host, port: module.us_socket_local_port(bound) } }
}

/** uWebSockets.js does not say why it could not bind; Node, asked for the same address, does. */
async function bindError(host: string, port: number): Promise<WebMQError> {
  const cause = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
    const probe = createServer()
    probe.once('error', resolve)
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve(undefined)))
  })
  const code = cause?.code === 'EADDRINUSE' ? 'E_ADDRESS_IN_USE' : 'E_ADDRESS_UNAVAILABLE'
  return new WebMQError(code, { detail: `${host}:${port}`, cause })
}

/** Descriptors that the process needs for everything else: files, brokers, listening sockets, requests in flight. */
const RESERVED_DESCRIPTORS = 256

/** `maxConnections`, where 0 stands for what the descriptor limit of the process allows. */
export function connectionLimit(maxConnections: number): number {
  return maxConnections > 0 ? maxConnections : Math.max(1, descriptorLimit() - RESERVED_DESCRIPTORS)
}

function descriptorLimit(): number {
  if (process.platform !== 'linux') return Number.POSITIVE_INFINITY
  const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
}
