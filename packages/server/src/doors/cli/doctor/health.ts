import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as plainRequest,
} from 'node:http'
import { request as secureRequest } from 'node:https'
import type { Readiness } from '../../../features/observing/health/readiness.js'
import { NODE_STATES } from '../../../features/observing/health/states.js'
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
    const ready = await ask(target, '/ready?full=503')
    return [...statesIn(ready), clock]
  } catch (error) {
    return [skipped('health', `/health does not answer (${whyOf(error)})`)]
  }
}

/** The status first: it decides whether clients and publishes pass. */
function statesIn(ready: Answer): readonly Finding[] {
  const readiness = jsonOf(ready) as Partial<Readiness>
  const found = NODE_STATES.flatMap(({ name, isFailure = false, textOf, advice }) => {
    const text = textOf(readiness)
    return text === undefined ? [] : [{ name, isFailure, text, advice }]
  })
  const [first, ...failures] = found.filter(({ isFailure }) => isFailure)
  const notices = found.filter(({ isFailure }) => !isFailure)
  const isReady = ready.status === 200 && readiness.status === 'ready'
  const head =
    first !== undefined
      ? failure('health', `the server is not ready: ${first.text}`, first.advice)
      : isReady
        ? ok(
            'health',
            `the server is ready${readiness.broker === undefined ? '; how it is, it tells its own machine, or its admin port (--admin)' : ''}`,
          )
        : failure(
            'health',
            `the server is not ready: ${String(readiness.status)}`,
            'Look at its /ready, and at its log.',
          )
  return [
    head,
    ...failures.map(({ name, text, advice }) => failure(name, text, advice)),
    ...notices.map(({ name, text, advice }) => warning(name, text, advice)),
  ]
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
