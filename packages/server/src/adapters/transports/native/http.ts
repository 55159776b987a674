import type { IncomingMessage, Server } from 'node:http'
import { isIPv6, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { WebMQError } from 'webmq-client/protocol'
import type { NativeEngine } from 'webmq-native'
import { TurnQueue } from '../../../kernel/base/turn-queue.js'
import type { TransportOptions } from '../../../kernel/ports/transport-options.js'
import { UNIX_PEER } from '../../../kernel/ports/unix-socket.js'
import { refuse, rejectionOf } from '../upgrade/rejection.js'
import { requestHead, takeUpgrades } from '../upgrade/take-upgrades.js'
import { errorOf } from './engine.js'
import type { HttpPeer } from './events.js'

/** A connection and its first answer cost up to 300 us of the event loop; more of them where they cost less. */
const SOCKETS_PER_TURN = 4
const TURN_MS = 1
/** As many as the engine keeps: `MAX_WAITING` in `crates/engine/src/bridge/http_sockets.rs`. */
const MAX_WAITING = 1_024

/** Clients try again after a 503 [P-1.7]. */
const ANOTHER = { status: 503, detail: 'this connection has carried other requests; come by another one' }

interface Waiting {
  readonly token: number
  readonly peer: HttpPeer | undefined
  readonly read: Buffer
}

export class NativeHttp {
  readonly #server: Server
  readonly #takeSocket: (token: number) => number
  readonly #failed: (error: unknown) => void
  readonly #sockets = new Set<Socket>()
  /** Those that tell of another client than the one at their other end. */
  readonly #described = new WeakSet<Socket>()
  /** The engine closes the oldest of too many that wait; their tokens are void then. */
  readonly #queue = this.#newQueue()
  /** Beside them, so that a thousand other requests do not make an orchestrator end the process. */
  readonly #probes = this.#newQueue()
  /** How the request of a probe begins. */
  readonly #probeHeads: readonly Buffer[]

  /**
   * @param served.server Gets the connections.
   * @param served.probePaths See {@link TransportOptions.probePaths}.
   * @param takeSocket Returns the descriptor of a socket, -1 when the engine has closed it.
   * @param failed Called when a socket cannot be served.
   */
  constructor(
    { server, probePaths = [] }: { readonly server: Server; readonly probePaths?: readonly string[] | undefined },
    takeSocket: (token: number) => number,
    failed: (error: unknown) => void,
  ) {
    this.#server = server
    this.#probeHeads = probePaths.map((path) => Buffer.from(`GET ${path} `))
    this.#takeSocket = takeSocket
    this.#failed = failed
  }

  /**
   * Hands a connection to the HTTP server, which serves it from the first byte, with keep-alive and bodies. Few per turn of
   * the event loop; the others stay in the engine.
   * @param peer The client, if the socket does not tell of it.
   * @param read The bytes that the engine has read; copied.
   */
  serve(token: number, peer: HttpPeer | undefined, read: Uint8Array): void {
    const waiting = { token, peer, read: Buffer.from(read) }
    const isProbe = this.#probeHeads.some((head) => head.equals(waiting.read.subarray(0, head.length)))
    const queue = isProbe ? this.#probes : this.#queue
    queue.push(waiting)
  }

  /**
   * Gives a connection back to the engine, which answers this request. Returns `false`, with nothing changed, where the engine would
   * take another address for the client's (its own TLS, a PROXY header), or where an earlier answer is not written yet.
   * @param head What was read behind the request.
   */
  giveBack(engine: NativeEngine, request: IncomingMessage, head: Uint8Array = new Uint8Array()): boolean {
    const { socket } = request
    if (!this.#sockets.has(socket) || this.#described.has(socket) || socket.writableLength > 0) return false
    try {
      handOver(engine, request, socket, head)
      return true
    } catch (error) {
      this.#failed(error)
      return false
    }
  }

  /** As {@link giveBack}, for an upgrade. Where that cannot be, the client is told to come by another connection. */
  giveUpgradeBack(engine: NativeEngine | undefined, request: IncomingMessage, head: Uint8Array): void {
    if (engine === undefined) refuse(request.socket, rejectionOf('E_DRAIN'))
    else if (!this.giveBack(engine, request, head)) refuse(request.socket, rejectionOf('E_UNSUPPORTED', ANOTHER))
  }

  /** Ends all connections; pending answers are cut off. */
  close(): void {
    this.#queue.clear()
    this.#probes.clear()
    for (const socket of this.#sockets) socket.destroy()
  }

  #newQueue(): TurnQueue<Waiting> {
    return new TurnQueue(SOCKETS_PER_TURN, (waiting) => this.#start(waiting), {
      maxWaiting: MAX_WAITING,
      turnMs: TURN_MS,
    })
  }

  #start({ token, peer, read }: Waiting): void {
    try {
      const fd = this.#takeSocket(token)
      if (fd >= 0) this.#serve(fd, peer, read)
    } catch (error) {
      this.#failed(error)
    }
  }

  #serve(fd: number, peer: HttpPeer | undefined, read: Buffer): void {
    const socket = new Socket({ fd, readable: true, writable: true, allowHalfOpen: true })
    if (peer !== undefined) {
      describe(socket, peer)
      if (peer.isEncrypted || peer.address !== UNIX_PEER) this.#described.add(socket)
    }
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    this.#server.emit('connection', socket)
    // After the server has attached its listeners, before the event loop reads more.
    if (!socket.destroyed) socket.unshift(read)
  }
}

/** Makes a socket tell of its client what the client's own would. Frameworks derive the protocol from `encrypted`. */
function describe(socket: Socket, { address, port, isEncrypted }: HttpPeer): void {
  Object.defineProperties(socket, {
    ...(isEncrypted ? { encrypted: { value: true, enumerable: true } } : undefined),
    remoteAddress: { value: address, enumerable: true },
    remoteFamily: { value: isIPv6(address) ? 'IPv6' : 'IPv4', enumerable: true },
    remotePort: { value: port, enumerable: true },
  })
}

const NOT_IMPLEMENTED = 'HTTP/1.1 501 Not Implemented\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'

/**
 * Hands the upgrades of a Node `http` server to the engine; returns a function that stops it.
 * @param path Upgrades of other paths are left to other listeners; absent: all are taken.
 * @param failed Called for connections that cannot be handed over.
 */
export function attachEngine(
  engine: NativeEngine,
  server: Server,
  path: string | undefined,
  failed: (error: Error) => void,
): () => void {
  if (server instanceof process.getBuiltinModule('node:tls').Server) {
    throw new WebMQError('E_UNSUPPORTED', {
      detail: 'the native transport takes no upgrades of an https server; use ws',
    })
  }
  return takeUpgrades(server, path, (request, socket, head) => {
    try {
      handOver(engine, request, socket, head)
    } catch (error) {
      socket.end(NOT_IMPLEMENTED)
      failed(errorOf(error))
    }
  })
}

/**
 * The engine answers this request, and has the connection from then on.
 * @param head What was read behind the request.
 * @throws {WebMQError} `E_UNSUPPORTED` if the connection has no descriptor or is encrypted. Nothing has changed then.
 */
function handOver(engine: NativeEngine, request: IncomingMessage, socket: Duplex, head: Uint8Array): void {
  engine.attach(descriptorOf(socket), Buffer.concat([requestHead(request), head]))
  // The engine has its own descriptor.
  socket.destroy()
}

/** @throws {WebMQError} `E_UNSUPPORTED` if the connection has no descriptor or is encrypted. */
function descriptorOf(socket: Duplex): number {
  const isEncrypted = 'encrypted' in socket && socket.encrypted === true
  const handle: unknown = '_handle' in socket ? socket._handle : undefined
  const fd: unknown = typeof handle === 'object' && handle !== null && 'fd' in handle ? handle.fd : undefined
  if (isEncrypted || typeof fd !== 'number' || fd < 0) {
    throw new WebMQError('E_UNSUPPORTED', { detail: 'only plain TCP connections can be attached' })
  }
  return fd
}
