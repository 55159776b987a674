import { readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { isLoopback } from '../../identity/loopback.js'
import { type Finding, ok, skipped, warning } from './finding.js'
import { ask } from './http.js'
import type { DoctorTarget } from './target.js'

/** Enough for the default of `maxConnections` on most systems; each connection is one open file. */
const FEW_FILES = 10_000

/** Whether these addresses are of this machine. */
export function isHere(addresses: readonly string[]): boolean {
  const own = Object.values(networkInterfaces()).flatMap((entries) => entries?.map(({ address }) => address) ?? [])
  return addresses.length > 0 && addresses.every((address) => isLoopback(address) || own.includes(address))
}

/** How many files the server may open, which limits its connections; by its metrics, otherwise by this shell. */
export async function checkOpenFiles(target: DoctorTarget): Promise<Finding> {
  const [limit, whose] = (await limitOfServer(target)) ?? limitOfShell() ?? []
  if (limit === undefined) return skipped('open files', 'the limit is not known here')
  const text = `${whose} may open ${Number.isFinite(limit) ? limit : 'any number of'} files`
  if (limit >= FEW_FILES) return ok('open files', text)
  const advice = 'Each connection is one: raise it with ulimit -n, LimitNOFILE of systemd, or --ulimit of Docker.'
  return warning('open files', text, advice)
}

type Limit = readonly [limit: number, whose: string]

async function limitOfServer(target: DoctorTarget): Promise<Limit | undefined> {
  const answer = await ask(target, '/metrics').catch(() => undefined)
  const [, limit] = /^process_max_fds (\S+)$/m.exec(answer?.body ?? '') ?? []
  return limit === undefined ? undefined : [Number(limit), 'the server']
}

/** Node raises its own limit to the hard one, so that counts. */
function limitOfShell(): Limit | undefined {
  try {
    const [, hard] = /^Max open files +\S+ +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    if (hard === undefined) return undefined
    return [hard === 'unlimited' ? Number.POSITIVE_INFINITY : Number(hard), 'a process of this shell']
  } catch {
    // Only Linux has this file.
    return undefined
  }
}
