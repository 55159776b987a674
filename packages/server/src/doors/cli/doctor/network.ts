import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { connect, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { isLoopback } from '../../../kernel/identity/loopback.js'
import { type DoctorTarget, elapsedMs, type Finding, failure, inTime, ok, skipped, warning, whyOf } from './target.js'

/** Addresses that are tried; a name with more is a large service. */
const MAX_ADDRESSES = 8

export async function checkName({ host, timeoutMs }: DoctorTarget): Promise<readonly [Finding, readonly string[]]> {
  if (isIP(host) !== 0) return [skipped('dns', `${host} is an address`), [host]]
  const startedMs = performance.now()
  try {
    const found = await inTime(lookup(host, { all: true, verbatim: true }), timeoutMs)
    const addresses = [...new Set(found.map(({ address }) => address))].slice(0, MAX_ADDRESSES)
    return [ok('dns', `${host} is ${addresses.join(', ')} (${elapsedMs(startedMs)} ms)`), addresses]
  } catch (error) {
    const text = `no address of ${host} was found (${whyOf(error)})`
    return [failure('dns', text, 'Check the spelling of the name, and its A and AAAA records.'), []]
  }
}

export function isHere(addresses: readonly string[]): boolean {
  const own = Object.values(networkInterfaces()).flatMap((entries) => entries?.map(({ address }) => address) ?? [])
  return addresses.length > 0 && addresses.every((address) => isLoopback(address) || own.includes(address))
}

export async function checkPort(target: DoctorTarget, addresses: readonly string[]): Promise<Finding> {
  const { port, host } = target
  const startedMs = performance.now()
  let firstMs: number | undefined
  const errors = await Promise.all(
    addresses.map(async (address) => {
      const error = await connectError(address, target)
      if (error === undefined) firstMs ??= elapsedMs(startedMs)
      return { address, error }
    }),
  )
  const failed = errors.filter(({ error }) => error !== undefined)
  if (failed.length === 0) return ok('tcp', `port ${port} answers (${firstMs} ms)`)
  const problems = failed.map(({ address, error }) => `${address}: ${error}`).join(', ')
  if (firstMs !== undefined) {
    return warning(
      'tcp',
      `port ${port} answers at some addresses only (${problems})`,
      'Clients that try these addresses first wait longer: bind them (--host ::), or remove their DNS records.',
    )
  }
  return failure(
    'tcp',
    `port ${port} does not answer (${problems})`,
    failed.every(({ error }) => error === 'ECONNREFUSED')
      ? `Nothing listens there: is the server running, and with --port ${port} and a --host that ${host} reaches? One that starts waits for its broker first: /ready of its admin port says so.`
      : 'Check the firewall, the security group, and that the server binds more than loopback (--host).',
  )
}

async function connectError(host: string, { port, timeoutMs }: DoctorTarget): Promise<string | undefined> {
  const socket = connect({ host, port })
  try {
    await inTime(once(socket, 'connect'), timeoutMs)
    return undefined
  } catch (error) {
    return whyOf(error)
  } finally {
    socket.on('error', () => undefined).destroy()
  }
}
