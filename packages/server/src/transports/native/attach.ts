import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebMQError } from 'webmq-client/protocol'
import type { NativeEngine } from 'webmq-native'
import { takeUpgrades } from '../upgrade/take-upgrades.js'
import { errorOf } from './engine.js'

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
export function handOver(engine: NativeEngine, request: IncomingMessage, socket: Duplex, head: Uint8Array): void {
  engine.attach(descriptorOf(socket), Buffer.concat([requestHead(request), head]))
  // The engine has its own descriptor.
  socket.destroy()
}

/** The request as the client sent it, up to the empty line. Node has checked that no header contains a line end. */
function requestHead({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`
  for (let index = 0; index < rawHeaders.length; index += 2)
    head += `${rawHeaders[index]}: ${rawHeaders[index + 1]}\r\n`
  return Buffer.from(`${head}\r\n`, 'latin1')
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
