import type { Refusals } from '../checks.js'
import { WebMQError } from '../protocol/errors.js'

/** One answer per server and page is enough: it is for a developer, and the server may have just restarted. */
const PROBE_INTERVAL_MS = 60_000

const PROBE_TIMEOUT_MS = 3_000

/** By host, over all clients of the page. */
const probes = new Map<string, { readonly atMs: number; reason?: string }>()
const printed = new Set<string>()

/** Asks the server's `/health` why it refused an upgrade, beside the next attempts of a client. */
export class SearchedRefusals implements Refusals {
  readonly #onFound: (error: WebMQError) => void
  #search = new AbortController()
  #reason: string | undefined

  constructor(onFound: (error: WebMQError) => void) {
    this.#onFound = onFound
  }

  refused(url: string, error: WebMQError, isLasting: boolean): WebMQError {
    const explained = this.#explained(error)
    if (isLasting) void this.#find(url, error)
    return explained
  }

  end(): void {
    this.#search.abort()
    this.#reason = undefined
  }

  async #find(url: string, error: WebMQError): Promise<void> {
    this.#search.abort()
    this.#search = new AbortController()
    const { signal } = this.#search
    const reason = await findReason(url, signal)
    if (signal.aborted) return
    this.#reason = reason
    this.#onFound(this.#explained(error))
  }

  #explained(error: WebMQError): WebMQError {
    return this.#reason === undefined
      ? error
      : new WebMQError(error.code, { message: `${error.message}: ${this.#reason}` })
  }
}

/**
 * Why a server refused the upgrade to a WebSocket: asks its `/health`, which pages of every origin may read. Prints each
 * reason once.
 *
 * @param url That of the WebSocket.
 * @returns The reason; `undefined` if it cannot be found, as without `fetch`, or was asked for during the last minute.
 */
async function findReason(url: string, signal: AbortSignal): Promise<string | undefined> {
  const { host, hostname, pathname } = new URL(url)
  // RFC 6761: no such host exists. Tests use them.
  if (typeof fetch !== 'function' || hostname.endsWith('.invalid')) return undefined
  const now = performance.now()
  const last = probes.get(host)
  if (last && now - last.atMs < PROBE_INTERVAL_MS) return last.reason
  const probe: { atMs: number; reason?: string } = { atMs: now }
  probes.set(host, probe)
  const reason = await askHealth(url.replace(/^ws/, 'http'), pathname, signal)
  if (signal.aborted) {
    probes.delete(host)
    return undefined
  }
  probe.reason = reason
  if (!printed.has(reason)) {
    printed.add(reason)
    console.warn(`webmq: could not connect to ${url}: ${reason}`)
  }
  return reason
}

/** The members of `/health` that everybody may read. */
interface Health {
  readonly server?: unknown
  readonly path?: unknown
  readonly originAllowed?: unknown
}

async function askHealth(url: string, path: string, signal: AbortSignal): Promise<string> {
  const health = new URL('/health', url).href
  const ask = async (mode: RequestMode) => {
    const limit = new AbortController()
    const abort = () => limit.abort()
    const timer = setTimeout(abort, PROBE_TIMEOUT_MS)
    signal.addEventListener('abort', abort)
    try {
      const response = await fetch(health, { mode, credentials: 'omit', cache: 'no-store', signal: limit.signal })
      return await response.text()
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    }
  }
  let text: string
  try {
    text = await ask('cors')
  } catch {
    // Nobody there, or somebody whose answer this page may not read.
    return await ask('no-cors').then(
      () => notOurs(health, path),
      () => `nothing answers at ${new URL(url).host}: is the server running?`,
    )
  }
  return judge(text, path, health)
}

function judge(text: string, path: string, health: string): string {
  let answer: Health | null = null
  try {
    answer = JSON.parse(text) as Health | null
  } catch {
    return notOurs(health, path)
  }
  if (answer?.server !== 'webmq') return notOurs(health, path)
  if (answer.path !== path) return `wrong path: the endpoint is ${answer.path}`
  if (answer.originAllowed === false) {
    const { origin } = globalThis.location
    return `origin not allowed: start the server with --origin ${origin}`
  }
  return 'the server is up, with this path and for this origin: is a proxy in front that does not forward WebSockets?'
}

function notOurs(health: string, path: string): string {
  // The server of the page passes requests on to WebMQ, or should.
  if (new URL(health).origin === globalThis.location?.origin) {
    return `${health} is answered by something else: is the server running, and does the page's server pass ${path} on to it?`
  }
  return `not a WebMQ server: ${health} is answered by something else; check the host, the port and the proxy in front`
}
