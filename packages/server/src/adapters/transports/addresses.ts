import { WebMQError } from 'webmq-client/protocol'
import { unixPathOf } from '../../kernel/ports/unix-socket.js'

/** @throws {WebMQError} `E_OPTION_INVALID`. */
export function checkPort(port: number): void {
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new WebMQError('E_OPTION_INVALID', { detail: `port ${port} is not between 0 and 65535` })
  }
}

export function bindError(host: string, port: number, cause: NodeJS.ErrnoException | undefined): WebMQError {
  const code = cause?.code === 'EADDRINUSE' ? 'E_ADDRESS_IN_USE' : 'E_ADDRESS_UNAVAILABLE'
  return new WebMQError(code, { detail: unixPathOf(host) ?? `${host}:${port}`, cause })
}
