import { existsSync } from 'node:fs'
import { createServer, type ListenOptions } from 'node:net'
import { type TransportAddress, unixPathOf } from 'webmq-server/ports'
import { bindError } from 'webmq-server/transports'
import type { UwsApp, UwsListenSocket, UwsModule } from './module.js'

/** A bound address and its socket. */
export interface UwsListening {
  readonly socket: UwsListenSocket
  readonly address: TransportAddress
}

/**
 * Binds exclusively. By default, uWebSockets.js silently shares a port with processes that bind it the same way.
 * @throws {WebMQError} `E_ADDRESS_IN_USE`, `E_ADDRESS_UNAVAILABLE`.
 */
export async function listen(app: UwsApp, module: UwsModule, host: string, port: number): Promise<UwsListening> {
  // uWebSockets.js calls back before `listen` returns.
  let bound: UwsListenSocket | false = false
  const opened = (socket: UwsListenSocket | false) => {
    bound = socket
  }
  const path = unixPathOf(host)
  if (path === undefined) app.listen(host, port, module.LIBUS_LISTEN_EXCLUSIVE_PORT, opened)
  // It would replace the file.
  else if (!existsSync(path)) app.listen_unix(opened, path)
  if (bound === false) throw bindError(host, port, await causeOf(path === undefined ? { host, port } : { path }))
  return { socket: bound, address: { host, port: path === undefined ? module.us_socket_local_port(bound) : 0 } }
}

/** uWebSockets.js does not report why a bind failed, so Node tries the same address. */
function causeOf(place: ListenOptions): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', resolve)
    probe.listen({ ...place, exclusive: true }, () => probe.close(() => resolve(undefined)))
  })
}
