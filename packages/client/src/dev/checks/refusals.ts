import { isOffline } from '../../core/connection/lifecycle.js'
import { DOCS_URL } from '../../protocol/docs-url.js'
import { WebMQError } from '../../protocol/errors.js'

/** One answer per endpoint and page is enough: it is for a developer, and the server may have just restarted. */
const PROBE_INTERVAL_MS = 60_000

const PROBE_TIMEOUT_MS = 3_000

/** A server that takes an upgrade answers sooner. One that knows nothing of it may never answer, as Vite's. */
const PENDING_MS = 1_500

/** Why an upgrade failed, as far as its endpoint tells over HTTP. */
interface Finding {
  readonly reason: string
  /** Nobody was there, or all is well by now: a network that was away looks like that. */
  readonly isPassing: boolean
}

/** By endpoint, over all clients of the page. */
const probes = new Map<string, { readonly atMs: number; finding?: Finding }>()
const printed = new Set<string>()

/** Asks the endpoint over HTTP why it refused an upgrade, or did not answer, beside the next attempts of a client. */
export class Refusals {
  readonly #onFound: (error: WebMQError) => void
  #search = new AbortController()
  #timer: ReturnType<typeof setTimeout> | undefined
  #reason: string | undefined
  /** Of the upgrade that was asked for, until it has ended. */
  #url: string | undefined
  /** The address is right, so a failure is no mistake of the app. */
  #wasReached = false
  /** The endpoint was fine right after a refusal: it counts when the next upgrade is refused too. */
  #wasFine = false

  /** @param onFound Gets an explained error that came before its explanation. */
  constructor(onFound: (error: WebMQError) => void) {
    this.#onFound = onFound
  }

  /** An upgrade was asked for: some servers never answer. */
  asked(url: string): void {
    clearTimeout(this.#timer)
    this.#url = url
    if (this.#wasReached || isOffline(globalThis)) return
    const error = new WebMQError('E_CONNECT_FAILED', { detail: `no answer for ${PENDING_MS} ms` })
    this.#timer = setTimeout(() => void this.#find(url, error, true), PENDING_MS)
  }

  /** An attempt, or its connection, has ended. Returns the error with the reason why its upgrade was refused, if known. */
  failed(error: WebMQError, failedAttempts: number): WebMQError {
    clearTimeout(this.#timer)
    const url = this.#url
    this.#url = undefined
    if (url === undefined || error.code !== 'E_CONNECT_FAILED') return error
    const explained = this.#explained(error)
    // Not after the first failure of a lasting connection: a server that restarts has enough to do.
    const isLasting = !this.#wasReached || failedAttempts > 0
    if (isLasting && !isOffline(globalThis)) void this.#find(url, error)
    return explained
  }

  /** A connection is live. */
  reached(): void {
    this.end()
    this.#wasReached = true
  }

  /** The client is closed. */
  end(): void {
    clearTimeout(this.#timer)
    this.#search.abort()
    this.#reason = undefined
    this.#wasFine = false
  }

  /** @param isPending The upgrade may still be answered: an endpoint that is fine is only slow. */
  async #find(url: string, error: WebMQError, isPending = false): Promise<void> {
    this.#search.abort()
    this.#search = new AbortController()
    const { signal } = this.#search
    // Older versions of React Native have a `URL` without its parts.
    const finding = await find(url, signal).catch(() => undefined)
    if (signal.aborted || finding === undefined) return
    const { reason, isPassing } = finding
    const isFine = reason === FINE
    if (isFine && (isPending || !this.#wasFine)) {
      if (isPending) forget(url)
      else this.#wasFine = true
      return
    }
    this.#reason = reason
    if (!printed.has(reason) && !(isPassing && this.#wasReached)) {
      printed.add(reason)
      console.warn(`webmq: could not connect to ${url}: ${reason}`)
    }
    this.#onFound(this.#explained(error))
  }

  #explained(error: WebMQError): WebMQError {
    return this.#reason === undefined
      ? error
      : new WebMQError(error.code, { message: `${error.message.replace(` (${error.docs})`, '')}: ${this.#reason}` })
  }
}

const FINE = 'the endpoint is there, for this origin too: is a proxy in front that does not forward WebSockets?'

const endpointOf = (url: string) => new URL(url.replace(/^ws/, 'http'))

/** The next question is asked anew. */
function forget(url: string): void {
  probes.delete(endpointOf(url).href)
}

/** @returns `undefined` if nobody can be asked, as without `fetch`, or the question is still under way. */
async function find(url: string, signal: AbortSignal): Promise<Finding | undefined> {
  const endpoint = endpointOf(url)
  // RFC 6761: no such host exists. Tests use them.
  if (typeof fetch !== 'function' || endpoint.hostname.endsWith('.invalid')) return undefined
  const { href } = endpoint
  const now = performance.now()
  const last = probes.get(href)
  if (last && now - last.atMs < PROBE_INTERVAL_MS) return last.finding
  const probe: { atMs: number; finding?: Finding } = { atMs: now }
  probes.set(href, probe)
  const finding = await ask(endpoint, signal)
  if (signal.aborted) probes.delete(href)
  else probe.finding = finding
  return finding
}

async function ask(endpoint: URL, signal: AbortSignal): Promise<Finding> {
  const request = async (mode: RequestMode, { href } = endpoint) => {
    // Not `AbortSignal.any`, which React Native does not have.
    const limit = new AbortController()
    const abort = () => limit.abort()
    const timer = setTimeout(abort, PROBE_TIMEOUT_MS)
    signal.addEventListener('abort', abort)
    try {
      const init: RequestInit = { mode, credentials: 'same-origin', cache: 'no-store', signal: limit.signal }
      const response = await fetch(href, init)
      return { status: response.status, text: await response.text() }
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    }
  }
  try {
    const { status, text } = await request('cors')
    return judge(endpoint, status, text)
  } catch {
    // Nobody there, or somebody whose answer this page may not read.
    return request('no-cors').then(
      () => foreign(endpoint),
      () => silent(endpoint, (plain) => request('no-cors', plain)),
    )
  }
}

/** Nobody answers, or only without TLS: a page that came by TLS may not ask that. */
async function silent({ protocol, host, href }: URL, request: (plain: URL) => Promise<unknown>): Promise<Finding> {
  const plain = new URL(href.replace('https:', 'http:'))
  const isPlain = protocol === 'https:' && (await request(plain).then(Boolean, () => false))
  return isPlain
    ? { reason: `${host} does not speak TLS: is it ws://${host}?`, isPassing: false }
    : { reason: `nothing answers at ${host}: is the server running?`, isPassing: true }
}

/** What everybody may read of an answer of WebMQ. */
interface Identity {
  readonly code?: unknown
  readonly server?: unknown
  readonly path?: unknown
  readonly originAllowed?: unknown
}

function judge(endpoint: URL, status: number, text: string): Finding {
  let answer: Identity | null = null
  try {
    answer = JSON.parse(text) as Identity | null
  } catch {
    return foreign(endpoint, status)
  }
  if (answer?.server !== 'webmq') return foreign(endpoint, status)
  if (answer.code === 'E_PATH_NOT_FOUND') {
    return { reason: `wrong path: the endpoint is ${answer.path}`, isPassing: false }
  }
  if (answer.originAllowed === false) {
    const { origin } = globalThis.location
    return { reason: `origin not allowed: start the server with --origin ${origin}`, isPassing: false }
  }
  return { reason: FINE, isPassing: true }
}

/** Somebody else answers: a proxy that does not reach the server, or a host that passes nothing on. */
function foreign({ href, origin, pathname }: URL, status = 0): Finding {
  if (status >= 500) {
    return { reason: `${href} answers ${status}: is the server behind this proxy running?`, isPassing: true }
  }
  if (status === 426) {
    const reason = `${href} takes upgrades, but does not say that it is WebMQ: another program, or a server older than this client`
    return { reason, isPassing: false }
  }
  const reason =
    origin === globalThis.location?.origin
      ? `${href} is answered by the page's own server, which must pass ${pathname} on to WebMQ: ${DOCS_URL}client/proxy.md`
      : `not a WebMQ server: ${href} is answered by something else; check the host, the port and the proxy in front`
  return { reason, isPassing: false }
}
