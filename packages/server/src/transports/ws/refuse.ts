import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Rejection } from '../../ports/transport.js'

/** Time that a client has to end its side after it was refused. A reset before it reads would destroy the answer. */
const LINGER_MS = 1_000

/** Answers a request with a valid rejection, and ends its connection. */
export function refuse(socket: Duplex, { status, headers, body }: Required<Rejection>): void {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const length = Buffer.byteLength(body)
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}Connection: close\r\nContent-Length: ${length}\r\n\r\n`
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.on('error', () => socket.destroy())
  socket.once('close', () => clearTimeout(timer))
  socket.end(head + body)
  // Later input is dropped.
  socket.resume()
}
