import type { Socket } from 'node:net'
import { WebMQError } from 'webmq-client/protocol'
import { Networks } from '../../ports/networks.js'
import { type ProxiedClient, parseProxyHeader } from './proxy-header.js'

/** Refused headers are reported this often at most. */
const REPORT_INTERVAL_MS = 10_000

/** Options of {@link ProxiedConnections}. */
export interface ProxiedOptions {
  /** Ranges of addresses of proxies that speak the PROXY protocol. */
  readonly from: readonly string[]
  /** Time for a header to be complete. */
  readonly timeoutMs: number
  failed(error: Error): void
}

/** Takes the header of the PROXY protocol off connections of trusted proxies, before TLS and HTTP. */
export class ProxiedConnections {
  readonly #options: ProxiedOptions
  readonly #networks: Networks
  /** Clients of connections that still have to do their TLS handshake, by the address of their proxy. */
  readonly #clients = new Map<string, ProxiedClient>()
  #refusedCount = 0
  #reportedAtMs = Number.NEGATIVE_INFINITY

  constructor(options: ProxiedOptions) {
    this.#options = options
    this.#networks = new Networks(options.from)
  }

  /** Connections that were closed because they did not begin with a valid header. */
  get refusedCount(): number {
    return this.#refusedCount
  }

  /**
   * Calls `next` once a connection is at its first byte of the client. Whoever takes it MUST do so within the call.
   * @param next Gets what was read already; nobody else reads it.
   */
  receive(socket: Socket, next: (read: Buffer | undefined) => void): void {
    const proxy = socket.remoteAddress ?? ''
    if (!this.#networks.contains(proxy)) {
      next(undefined)
      return
    }
    let read: Buffer = Buffer.alloc(0)
    const drop = () => socket.destroy()
    const timer = setTimeout(drop, this.#options.timeoutMs)
    const stop = () => {
      clearTimeout(timer)
      socket.off('data', onData).off('end', drop).off('close', stop)
    }
    const onData = (chunk: Buffer) => {
      read = read.length === 0 ? chunk : Buffer.concat([read, chunk])
      const header = parseProxyHeader(read)
      if (header === 'incomplete') return
      stop()
      if (header === 'malformed') {
        this.#refuse(socket, proxy)
        return
      }
      if (header.client !== undefined) this.#remember(socket, header.client)
      next(read.subarray(header.length))
      socket.off('error', drop)
    }
    socket.on('data', onData).on('end', drop).on('close', stop).on('error', drop)
  }

  /** Makes an encrypted connection tell of the client. */
  describe(socket: Socket): void {
    const client = this.#clients.get(endOf(socket))
    if (client !== undefined) describe(socket, client)
  }

  #remember(socket: Socket, client: ProxiedClient): void {
    const end = endOf(socket)
    this.#clients.set(end, client)
    socket.once('close', () => this.#clients.delete(end))
    describe(socket, client)
  }

  #refuse(socket: Socket, proxy: string): void {
    this.#refusedCount++
    socket.destroy()
    const nowMs = performance.now()
    if (nowMs - this.#reportedAtMs < REPORT_INTERVAL_MS) return
    this.#reportedAtMs = nowMs
    const detail = `a connection of the trusted proxy ${proxy} was closed: it does not begin with a valid PROXY header`
    this.#options.failed(new WebMQError('E_TRANSPORT_FAILED', { detail }))
  }
}

/** Names an open connection: the other end of one port is never the same for two. */
function endOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}

function describe(socket: Socket, { address, port }: ProxiedClient): void {
  Object.defineProperties(socket, {
    remoteAddress: { value: address, enumerable: true },
    remoteFamily: { value: address.includes(':') ? 'IPv6' : 'IPv4', enumerable: true },
    remotePort: { value: port, enumerable: true },
  })
}
