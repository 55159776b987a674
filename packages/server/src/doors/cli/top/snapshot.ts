import { isErrorCode, WebMQError } from 'webmq-client/protocol'
import { invalidOption } from '../../../kernel/base/invalid-option.js'
import { limitedBytes } from '../../../kernel/base/limited-bytes.js'
import { isLoopback } from '../../../kernel/identity/loopback.js'
import type { AnswerOf } from '../../http/api/route.js'
import type { ROUTES } from '../../http/api/routes.js'
import type { ApiInfo } from '../../http/client/webmq-api.js'
import { readTextFile } from '../option-sources.js'
import { type Terminal, warn } from '../terminal.js'

const TIMEOUT_MS = 5_000
/** A page of 1,000 patterns has a tenth of it. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024

export interface ApiSource {
  readonly url: URL
  /** @throws {WebMQError} `E_CONNECT_FAILED`, or the error of the server. */
  text(path: string): Promise<string>
}

/** @throws {WebMQError} `E_OPTION_INVALID`: no URL, or no key. */
export function apiSourceOf(
  text: string,
  flags: { readonly apiKey?: string; readonly apiKeyFile?: string },
  terminal: Terminal,
): ApiSource {
  const url = parseUrl(text)
  const key = keyOf(flags, terminal.env)
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) warn('the key travels without encryption', terminal)
  return { url, text: (path) => read(new URL(path, url), key) }
}

function parseUrl(text: string): URL {
  const full = (/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`).replace(/^ws/i, 'http')
  if (URL.canParse(full) && /^https?:/i.test(full)) return new URL(new URL(full).origin)
  throw invalidOption(`${JSON.stringify(text)} is not the address of a server, such as https://example.com`)
}

function keyOf(flags: { readonly apiKey?: string; readonly apiKeyFile?: string }, env: NodeJS.ProcessEnv): string {
  const { apiKey, apiKeyFile } = flags
  if (apiKey !== undefined && apiKeyFile !== undefined) throw invalidOption('--api-key and --api-key-file: use one')
  const file = apiKeyFile ?? (apiKey === undefined ? env.WEBMQ_API_KEY_FILE : undefined)
  // The server takes several keys; one is enough to ask.
  const [key = ''] = (apiKey ?? (file ? readTextFile(file, '--api-key-file') : (env.WEBMQ_API_KEY ?? ''))).split(
    /[\n,]/,
  )
  if (/^[!-~]+$/.test(key.trim())) return key.trim()
  throw invalidOption(key === '' ? 'no key: give --api-key-file, --api-key or WEBMQ_API_KEY' : '--api-key: not a key')
}

async function read(url: URL, key: string): Promise<string> {
  let response: Response
  let text: string
  try {
    // A redirect would take the key elsewhere.
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    response = await fetch(url, { headers: { authorization: `Bearer ${key}` }, redirect: 'error', signal })
    text = (await limitedBytes(response.body ?? [], MAX_ANSWER_BYTES)).toString()
  } catch (cause) {
    const reason = cause instanceof Error && cause.cause instanceof Error ? cause.cause.message : String(cause)
    throw new WebMQError('E_CONNECT_FAILED', { detail: `${url.origin}: ${reason}`, cause })
  }
  if (response.ok) return text
  throw errorOf(response.status, text, url)
}

/** The error of the server; of something else, by its status. */
function errorOf(status: number, text: string, url: URL): WebMQError {
  const message = `${url.origin} answers ${url.pathname} with ${status}`
  let answer: { readonly code?: unknown; readonly message?: unknown } | null = {}
  try {
    answer = JSON.parse(text) as typeof answer
  } catch {
    // A proxy answers with a page.
  }
  const { code, message: reason } = answer ?? {}
  if (typeof code === 'string' && isErrorCode(code)) {
    return new WebMQError(code, { message: `${message}: ${String(reason)}` })
  }
  const isDenied = status === 401 || status === 403
  return new WebMQError(isDenied ? 'E_FORBIDDEN' : 'E_UNSUPPORTED', {
    message: `${message}${typeof reason === 'string' ? `: ${reason}` : '; is it a WebMQ server with an HTTP API?'}`,
  })
}

type Patterns = AnswerOf<(typeof ROUTES)['patterns']>

export interface Snapshot extends Pick<Patterns, 'patternCount' | 'patterns'> {
  readonly at: string
  /** The node that has answered; patterns and output are its own. */
  readonly node: string
  readonly nodes: ApiInfo['nodes']
  /** Names of nodes that did not answer. */
  readonly missing: readonly string[]
  /** Of the metrics of the node; absent where this machine may not read them. */
  readonly output?: { readonly slowConsumers: number; readonly waitingBytes: number }
}

export async function lookAt(source: ApiSource, patternCount: number): Promise<Snapshot> {
  const [info, patterns, output] = await Promise.all([
    json<ApiInfo>(source, '/api/info'),
    json<Patterns>(source, `/api/patterns?limit=${Math.min(patternCount, 1_000)}`),
    outputOf(source),
  ])
  return {
    at: new Date().toISOString(),
    node: info.node,
    nodes: info.nodes,
    missing: info.missing,
    patternCount: patterns.patternCount,
    patterns: patterns.patterns,
    ...(output === undefined ? {} : { output }),
  }
}

async function json<T>(source: ApiSource, path: string): Promise<T> {
  const text = await source.text(path)
  try {
    return JSON.parse(text) as T
  } catch (cause) {
    throw new WebMQError('E_UNSUPPORTED', { detail: `${path} is answered by something else`, cause })
  }
}

/** Metrics have an audience of their own, and may be off. */
async function outputOf(source: ApiSource): Promise<Snapshot['output']> {
  const text = await source.text('/metrics').catch((error: unknown) => {
    if (error instanceof WebMQError) return undefined
    throw error
  })
  const [slowConsumers, waitingBytes] = ['webmq_transport_slow_consumers_total', 'webmq_transport_outbox_bytes'].map(
    (name) => sumOf(text ?? '', name),
  )
  return slowConsumers === undefined || waitingBytes === undefined ? undefined : { slowConsumers, waitingBytes }
}

function sumOf(text: string, name: string): number | undefined {
  const values = [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)`, 'gm'))].map(([, value]) =>
    Number(value),
  )
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0)
}
