import { createServer } from 'node:net'
import { serviceError } from './service-error.js'

/** Below the ephemeral range (32768-60999), or an outgoing connection may take the port while its service restarts. */
const MIN_PORT = 20_000
const PORT_COUNT = 12_000
const MAX_ATTEMPTS = 50

/** Handed out by this process: a port is free until its service has bound it, so it must not be given twice. */
const taken = new Set<number>()

/**
 * A free port on loopback, outside the ephemeral range, and another one with every call. Another process may still
 * bind it first: whoever starts a service on it tries again with another one then.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const port = MIN_PORT + Math.floor(Math.random() * PORT_COUNT)
    if (taken.has(port) || !(await isFree(port))) continue
    taken.add(port)
    return port
  }
  throw serviceError(`no free port was found between ${MIN_PORT} and ${MIN_PORT + PORT_COUNT}`)
}

/** Whether a port of loopback can be bound now. */
export function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
