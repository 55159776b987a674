import { WebMQError } from 'webmq-client/protocol'
import type { Transport } from '../../kernel/ports/transport.js'
import type { TransportOptions } from '../../kernel/ports/transport-options.js'

type CreateTransport = (options: TransportOptions) => Transport

/**
 * A transport of a package of its own, which is an optional peer of the server.
 * @param exportName Its function that makes the transport.
 * @throws {WebMQError} `E_TRANSPORT_MISSING`, with the command that installs the package.
 */
export async function createPackagedTransport(
  packageName: string,
  exportName: string,
  options: TransportOptions,
): Promise<Transport> {
  let namespace: Readonly<Record<string, unknown>>
  try {
    namespace = await import(packageName)
  } catch (cause) {
    throw missing(packageName, isNotFound(cause, packageName) ? 'is not installed' : 'does not load', cause)
  }
  const create = namespace[exportName]
  if (typeof create !== 'function') throw missing(packageName, `does not export ${exportName}`)
  return (create as CreateTransport)(options)
}

function isNotFound(error: unknown, packageName: string): boolean {
  const isCode = error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND'
  return isCode && error.message.includes(`'${packageName}'`)
}

function missing(packageName: string, what: string, cause?: unknown): WebMQError {
  const detail = `${packageName} ${what}; install it with \`npm install ${packageName}\`, or choose the native transport`
  return new WebMQError('E_TRANSPORT_MISSING', cause === undefined ? { detail } : { detail, cause })
}
