import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebMQError } from 'webmq-client/protocol'
import type { NativeEngine } from 'webmq-native'
import { errorOf } from './engine.js'

const NOT_IMPLEMENTED = 'HTTP/1.1 501 Not Implemented\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'

/**
 * Gives the upgrades of a Node `http` server to the engine; returns a function that ends that.
 * @param failed Told about connections that cannot be given away.
 */
export function attachEngine(engine: NativeEngine, server: Server, failed: (error: Error) => void): () => void {
  const upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const isWebSocket = /\bwebsocket\b/i.test(request.headers.upgrade ?? '')
    // Somebody else on the same server takes what is not for us.
    if (!isWebSocket && server.listenerCount('upgrade') > 1) return
    try {
      engine.attach(descriptorOf(socket), Buffer.concat([requestHead(request), head]))
      // The engine has a descriptor of its own by now.
      socket.destroy()
    } catch (error) {
      socket.end(NOT_IMPLEMENTED)
      failed(errorOf(error))
    }
  }
  server.on('upgrade', upgrade)
  return () => server.off('upgrade', upgrade)
}

/** A request as its client sent it, up to the empty line. Node has checked that no header has a line end in it. */
function requestHead({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`
  for (let index = 0; index < rawHeaders.length; index += 2)
    head += `${rawHeaders[index]}: ${rawHeaders[index + 1]}\r\n`
  return Buffer.from(`${head}\r\n`, 'latin1')
}

/** @throws {WebMQError} `E_UNSUPPORTED` when the connection has no descriptor, or when what it carries is encrypted. */
function descriptorOf(socket: Duplex): number {
  const isEncrypted = 'encrypted' in socket && socket.encrypted === true
  const handle: unknown = '_handle' in socket ? socket._handle : undefined
  const fd: unknown = typeof handle === 'object' && handle !== null && 'fd' in handle ? handle.fd : undefined
  if (isEncrypted || typeof fd !== 'number' || fd < 0) {
    throw new WebMQError('E_UNSUPPORTED', { detail: 'only plain TCP connections can be attached' })
  }
  return fd
}
