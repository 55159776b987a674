import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as plainRequest,
} from 'node:http'
import { request as secureRequest } from 'node:https'
import { inWords } from '../terminal.js'
import { type DoctorTarget, type Finding, failure, ok, skipped, tlsOptionsOf, warning, whyOf } from './target.js'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** More of a body is not read: it is an error page. */
const MAX_BODY_BYTES = 64 * 1024

export async function answerOf(response: IncomingMessage): Promise<Answer> {
  let body = ''
  for await (const text of response.setEncoding('utf8')) {
    body += String(text)
    if (body.length > MAX_BODY_BYTES) break
  }
  return { status: response.statusCode ?? 0, headers: response.headers, body }
}

/** The members of a JSON object; none for anything else. */
export function jsonOf({ body }: Answer): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** Sends one GET over a connection of its own. */
export async function ask(target: DoctorTarget, path: string, more: OutgoingHttpHeaders = {}): Promise<Answer> {
  const { host, port, isSecure, timeoutMs, url } = target
  const signal = AbortSignal.timeout(timeoutMs)
  const options = {
    host,
    port,
    path,
    agent: false,
    signal,
    headers: { host: url.host, ...more },
    ...tlsOptionsOf(target),
  }
  const request = (isSecure ? secureRequest : plainRequest)(options).end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  // An error that comes now is one of the response too.
  request.on('error', () => undefined)
  return await answerOf(response)
}

/** The header has whole seconds, and the way takes time. */
const EXACT_S = 2
/** Tokens are refused far before this. */
const WRONG_S = 60

export async function checkHealth(target: DoctorTarget): Promise<readonly Finding[]> {
  try {
    const sentMs = Date.now()
    const health = await ask(target, '/health')
    const clock = checkClock(health.headers.date, (sentMs + Date.now()) / 2)
    if (jsonOf(health).server !== 'webmq') {
      return [skipped('health', `/health is answered by something else (${health.status})`), clock]
    }
    const ready = await ask(target, '/ready')
    const { differentPeers, otherLogPeers, outbox, waitingPublishes } = jsonOf(ready)
    if (outbox === 'down') {
      const more = 'Look at outboxReason of /ready on the machine of the server, or at its log.'
      return [warning('health', 'the server is ready, and its database outbox is down', more), clock]
    }
    if (typeof otherLogPeers === 'number') {
      const text = `the server is ready, and ${otherLogPeers} other nodes log other keys`
      const more = 'Give all nodes the same rules of --history and --retain: until then listeners are told gaps.'
      return [warning('health', text, more), clock]
    }
    if (typeof differentPeers === 'number') {
      const text = `the server is ready, and ${differentPeers} other nodes have other options, or are of another version`
      const more = 'End the upgrade, or give all nodes the same options. The log of the server names the nodes.'
      return [warning('health', text, more), clock]
    }
    if (typeof waitingPublishes === 'number') {
      const text = `the server is ready, and ${waitingPublishes} publishes wait for its broker, which is too slow for them`
      const more = 'Look at the CPU, memory and disk of the broker; ask again: a moment of it does no harm.'
      return [warning('health', text, more), clock]
    }
    if (ready.status === 200) return [ok('health', 'the server is ready'), clock]
    const advice = 'Look at /ready on the machine of the server, and at its log.'
    return [failure('health', `the server is not ready: ${String(jsonOf(ready).status)}`, advice), clock]
  } catch (error) {
    return [skipped('health', `/health does not answer (${whyOf(error)})`)]
  }
}

export function checkClock(date: string | undefined, atMs: number): Finding {
  const theirsMs = Date.parse(date ?? '')
  if (Number.isNaN(theirsMs)) return skipped('clock', 'the answer has no Date header')
  const skewS = (theirsMs + 500 - atMs) / 1000
  const differenceS = Math.abs(skewS)
  if (differenceS <= EXACT_S) return ok('clock', 'the clocks of server and this machine agree')
  const text = `the clock of the server is ${inWords(differenceS)} ${skewS > 0 ? 'ahead' : 'behind'}`
  const advice = 'Run NTP on both machines: tokens are valid at the time of the server.'
  return differenceS > WRONG_S ? failure('clock', text, advice) : warning('clock', text, advice)
}

/** Enough for the default of `maxConnections` on most systems; each connection is one open file. */
const FEW_FILES = 10_000

/** How many files the server may open, which limits its connections; by its metrics, otherwise by this shell. */
export async function checkOpenFiles(target: DoctorTarget): Promise<Finding> {
  const metrics = await ask(target, '/metrics').catch(() => undefined)
  const [, ofServer] = /^process_max_fds (\S+)$/m.exec(metrics?.body ?? '') ?? []
  const found = ofServer ?? limitOfShell()
  if (found === undefined) return skipped('open files', 'the limit is not known here')
  const limit = found === 'unlimited' ? Number.POSITIVE_INFINITY : Number(found)
  const whose = ofServer === undefined ? 'a process of this shell' : 'the server'
  const text = `${whose} may open ${Number.isFinite(limit) ? limit : 'any number of'} files`
  if (limit >= FEW_FILES) return ok('open files', text)
  const advice = 'Each connection is one: raise it with ulimit -n, LimitNOFILE of systemd, or --ulimit of Docker.'
  return warning('open files', text, advice)
}

/** Node raises its own limit to the hard one, so that counts. */
function limitOfShell(): string | undefined {
  try {
    return /^Max open files +\S+ +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
  } catch {
    // Only Linux has this file.
    return undefined
  }
}
