import { lookup } from 'node:dns/promises'
import { connect, isIP } from 'node:net'
import { type Finding, failure, ok, skipped, warning } from './finding.js'
import type { DoctorTarget } from './target.js'
import { elapsedMs, withTimeout } from './timing.js'

/** Addresses that are tried; a name with more is a large service. */
const MAX_ADDRESSES = 8

/** Finds the addresses of the host. */
export async function checkName({ host, timeoutMs }: DoctorTarget): Promise<readonly [Finding, readonly string[]]> {
  if (isIP(host) !== 0) return [skipped('dns', `${host} is an address`), [host]]
  const startedMs = performance.now()
  try {
    const found = await withTimeout(lookup(host, { all: true, verbatim: true }), timeoutMs)
    const addresses = [...new Set(found.map(({ address }) => address))].slice(0, MAX_ADDRESSES)
    return [ok('dns', `${host} is ${addresses.join(', ')} (${elapsedMs(startedMs)} ms)`), addresses]
  } catch (error) {
    const text = `no address of ${host} was found (${codeOf(error)})`
    return [failure('dns', text, 'Check the spelling of the name, and its A and AAAA records.'), []]
  }
}

/** Connects to each address. */
export async function checkPort(target: DoctorTarget, addresses: readonly string[]): Promise<Finding> {
  const { port, host } = target
  const outcomes = await Promise.all(addresses.map((address) => tryAddress(address, target)))
  const failed = outcomes.filter(({ error }) => error !== undefined)
  const [best] = outcomes.filter(({ error }) => error === undefined)
  const problems = failed.map(({ address, error }) => `${address}: ${error}`).join(', ')
  if (best === undefined) {
    const refused = failed.every(({ error }) => error === 'ECONNREFUSED')
    return failure(
      'tcp',
      `port ${port} does not answer (${problems})`,
      refused
        ? `Nothing listens there: is the server running, and with --port ${port} and a --host that ${host} reaches?`
        : 'Check the firewall, the security group, and that the server binds more than loopback (--host).',
    )
  }
  if (failed.length === 0) return ok('tcp', `port ${port} answers (${best.ms} ms)`)
  return warning(
    'tcp',
    `port ${port} answers at some addresses only (${problems})`,
    'Clients that try these addresses first wait longer: bind them (--host ::), or remove their DNS records.',
  )
}

interface Outcome {
  readonly address: string
  readonly ms: number
  readonly error?: string
}

function tryAddress(address: string, { port, timeoutMs }: DoctorTarget): Promise<Outcome> {
  return new Promise((resolve) => {
    const startedMs = performance.now()
    const socket = connect({ host: address, port, timeout: timeoutMs })
    const end = (error?: string) => {
      socket.destroy()
      resolve({ address, ms: elapsedMs(startedMs), ...(error === undefined ? {} : { error }) })
    }
    socket.once('connect', () => end())
    socket.once('timeout', () => end(`no answer within ${timeoutMs} ms`))
    socket.on('error', (error) => end(codeOf(error)))
  })
}

/** The code of a system error, otherwise its message. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}
