import { once } from 'node:events'
import { chmodSync, closeSync, constants, fstatSync, lstatSync, openSync, unlinkSync } from 'node:fs'
import { connect } from 'node:net'
import { WebMQError } from 'webmq-client/protocol'
import type { ResolvedOptions } from '../../doors/options/server-options.js'
import type { Logger } from '../base/logger.js'
import { codeOf } from '../base/reason.js'
import type { Transport } from '../ports/transport.js'
import { unixPathOf } from '../ports/unix-socket.js'

/** The address of a listening server. */
export interface ServerAddress {
  /** `unix:` and the path of a Unix socket; the port is 0 then. */
  readonly host: string
  readonly port: number
  /** Address of the WebSocket endpoint: `ws://127.0.0.1:8080/ws`. */
  readonly url: string
}

/** @throws {WebMQError} `E_OPTION_INVALID`: the transport cannot do what an option asks for. */
export function assertCapable({ name, capabilities }: Transport, options: ResolvedOptions, isAttached: boolean): void {
  const refuse = (detail: string) => {
    throw new WebMQError('E_OPTION_INVALID', { detail })
  }
  if (options.tls !== undefined && !capabilities.tls) refuse(`tls: the ${name} transport has no TLS`)
  if (unixPathOf(options.host) !== undefined && !isAttached && !capabilities.unixSocket)
    refuse(`host: the ${name} transport has no Unix sockets; use another one (--transport), or an address`)
  if (!options.proxyProtocol) return
  if (!capabilities.proxyProtocol) {
    refuse(`proxyProtocol: the ${name} transport does not read it; the native transport does (--transport native)`)
  }
  if (isAttached) refuse("proxyProtocol: it is for the server's own port, not for a server that it is attached to")
}

/** Fewer serve nobody: the descriptor limit is a mistake. */
const MIN_CONNECTIONS = 16

/**
 * The most connections that a transport holds, which it says in the log.
 * @throws {WebMQError} `E_TRANSPORT_FAILED`: the descriptor limit of the process leaves room for next to none.
 */
export function roomFor(
  transport: Transport,
  { maxConnections }: ResolvedOptions,
  logger: Pick<Logger, 'info' | 'warn'>,
): number {
  const { connectionLimit } = transport.stats()
  const isOwn = maxConnections > 0 && connectionLimit >= maxConnections
  const why = isOwn ? 'maxConnections' : 'the descriptor limit of the process (ulimit -n)'
  if (!isOwn && connectionLimit < Math.min(maxConnections || MIN_CONNECTIONS, MIN_CONNECTIONS)) {
    const detail = `${why} leaves room for ${connectionLimit} connections; raise it, for example to 65536`
    throw new WebMQError('E_TRANSPORT_FAILED', { detail })
  }
  const level = maxConnections > connectionLimit ? 'warn' : 'info'
  logger[level]({ connectionLimit, maxConnections }, `room for ${connectionLimit} connections, by ${why}`)
  return connectionLimit
}

/** A server on all addresses is reached from this machine as `localhost`; one on a Unix socket, as the library `ws` writes it. */
export function endpointUrl(host: string, port: number, { tls, path }: ResolvedOptions): string {
  const socket = unixPathOf(host)
  if (socket !== undefined) return `${tls === undefined ? 'ws' : 'wss'}+unix:${socket}:${path}`
  const isAny = host === '0.0.0.0' || host === '::'
  const name = isAny ? 'localhost' : host.includes(':') ? `[${host}]` : host
  return `${tls === undefined ? 'ws' : 'wss'}://${name}:${port}${path}`
}

/** The file of the Unix socket that a transport listens on, from before it binds until it has stopped. */
export class SocketFile {
  readonly #path: string
  #bound: string | undefined

  private constructor(path: string) {
    this.#path = path
  }

  /** `undefined`: the host is an address. */
  static of(host: string): SocketFile | undefined {
    const path = unixPathOf(host)
    return path === undefined ? undefined : new SocketFile(path)
  }

  /**
   * Removes what a server that crashed has left: a socket on which nobody listens.
   * @throws {WebMQError} `E_ADDRESS_IN_USE`; `E_ADDRESS_UNAVAILABLE`: the file is no socket, or may not be removed.
   */
  async clear(): Promise<void> {
    const path = this.#path
    try {
      const found = lstatSync(path, { throwIfNoEntry: false })
      if (found === undefined) return
      if (!found.isSocket()) throw new Error('the file is no socket')
      if (await isListening(path)) throw new WebMQError('E_ADDRESS_IN_USE', { detail: path })
      unlinkSync(path)
    } catch (cause) {
      if (cause instanceof WebMQError) throw cause
      throw new WebMQError('E_ADDRESS_UNAVAILABLE', { detail: `${path}: ${codeOf(cause)}`, cause })
    }
  }

  /**
   * The transport has bound it.
   * @param mode Octal digits, as `660`.
   * @throws {WebMQError} `E_ADDRESS_UNAVAILABLE`: something else is there by now.
   */
  bound(mode: string): void {
    changeMode(this.#path, Number.parseInt(mode, 8))
    this.#bound = identityOf(this.#path)
  }

  /** Removes the file, unless another server has put its own in its place. */
  remove(): void {
    if (this.#bound !== undefined && identityOf(this.#path) === this.#bound) unlinkSync(this.#path)
  }
}

/** Linux: a descriptor of what has a name, a link itself included. It reads nothing, and a socket has no other. */
const O_PATH = 0o10000000

/** Whose the folder is may have put a link in the place of a socket. */
function changeMode(path: string, mode: number): void {
  const descriptor = process.platform === 'linux' ? openSync(path, O_PATH | constants.O_NOFOLLOW) : undefined
  try {
    const found = descriptor === undefined ? lstatSync(path) : fstatSync(descriptor)
    if (!found.isSocket())
      throw new WebMQError('E_ADDRESS_UNAVAILABLE', { detail: `${path}: the file is no socket any more` })
    chmodSync(descriptor === undefined ? path : `/proc/self/fd/${descriptor}`, mode)
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

async function isListening(path: string): Promise<boolean> {
  const socket = connect(path)
  try {
    await once(socket, 'connect')
    return true
  } catch (error) {
    if (codeOf(error) === 'ECONNREFUSED') return false
    throw error
  } finally {
    socket.destroy()
  }
}

/** A new socket may get the inode of one that was removed, but not its time. */
function identityOf(path: string): string | undefined {
  const found = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  return found && `${found.ino} ${found.mtimeNs}`
}
