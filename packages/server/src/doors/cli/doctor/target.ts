import { isIP } from 'node:net'
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls'
import { invalidOption } from '../../../kernel/base/invalid-option.js'
import { codeOf } from '../../../kernel/base/reason.js'
import { within } from '../../../kernel/base/within.js'

export interface DoctorTarget {
  /** With the scheme `ws:` or `wss:`. */
  readonly url: URL
  /** Without the brackets of an IPv6 address. */
  readonly host: string
  readonly port: number
  readonly isSecure: boolean
  readonly origin: string | undefined
  readonly token: string | undefined
  /** PEM of authorities to trust in addition to those of Node. */
  readonly ca: string | undefined
  /** For each step. */
  readonly timeoutMs: number
  readonly idleMs: number | undefined
  /** The admin port of the same server. */
  readonly admin?: DoctorTarget | undefined
}

/** @throws {WebMQError} `E_OPTION_INVALID`: not a URL of a server. */
export function parseServerUrl(text: string): Pick<DoctorTarget, 'url' | 'host' | 'port' | 'isSecure'> {
  if (/^(wss?\+)?unix:/i.test(text)) {
    throw invalidOption(
      'doctor goes the way of clients, so give it the URL of the proxy; a socket itself answers curl --unix-socket FILE http://localhost/health',
    )
  }
  const full = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `ws://${text}`
  const url = URL.canParse(full) ? new URL(full.replace(/^http/i, 'ws')) : undefined
  if (url === undefined || !/^wss?:$/.test(url.protocol) || url.hostname === '') {
    const detail = `${JSON.stringify(text)} is not the URL of a server, such as wss://example.com/ws`
    throw invalidOption(detail)
  }
  if (url.username !== '' || url.password !== '') {
    throw invalidOption('the URL has a password; WebMQ wants a token: --token')
  }
  const isSecure = url.protocol === 'wss:'
  const port = url.port === '' ? (isSecure ? 443 : 80) : Number(url.port)
  return { url, host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port, isSecure }
}

/** @throws {WebMQError} `E_OPTION_INVALID`: browsers never send this origin. */
export function parseOrigin(text: string): string {
  const origin = URL.canParse(text) ? new URL(text).origin : 'null'
  if (text === origin) return text
  const hint = origin === 'null' ? '' : `; browsers send ${origin}`
  throw invalidOption(`--origin: ${JSON.stringify(text)} is not an origin${hint}`)
}

/** The URL with another scheme or path, for advice. */
export function urlWith({ url }: DoctorTarget, { scheme, path }: { scheme?: 'ws' | 'wss'; path?: string }): string {
  const other = new URL(url)
  if (path !== undefined) other.pathname = path
  return scheme === undefined ? other.href : other.href.replace(/^wss?/, scheme)
}

/** The last one made: reading all authorities takes tens of milliseconds. */
let trust: { readonly ca: string; readonly secureContext: SecureContext } | undefined

/** For a connection over TLS. A certificate that clients refuse is examined too, and nothing secret is sent then. */
export function tlsOptionsOf({ host, ca }: DoctorTarget) {
  // The option `ca` of Node would replace the known authorities.
  if (ca !== undefined && trust?.ca !== ca) {
    trust = { ca, secureContext: createSecureContext({ ca: [...rootCertificates, ca] }) }
  }
  return {
    rejectUnauthorized: false,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(ca === undefined || trust === undefined ? {} : { secureContext: trust.secureContext }),
  }
}

/** Milliseconds since a time of `performance.now()`, for people. */
export function elapsedMs(sinceMs: number): number {
  const ms = performance.now() - sinceMs
  return ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)
}

/** Rejects when a promise takes longer. */
export async function inTime<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  if (await within(promise, timeoutMs)) return await promise
  throw new Error(`no answer within ${timeoutMs} ms`)
}

/** Why nothing came: the code of a system error, otherwise what it says. */
export function whyOf(error: unknown): string {
  return error instanceof Error && error.name === 'AbortError' ? 'no answer in time' : codeOf(error)
}

/** `skip`: not checked, for the reason in `text`. */
export type FindingStatus = 'ok' | 'warn' | 'fail' | 'skip'

export interface Finding {
  readonly check: string
  readonly status: FindingStatus
  /** One sentence. May repeat what the server says, so a terminal gets it escaped. */
  readonly text: string
  readonly advice?: string
}

const of =
  (status: FindingStatus) =>
  (check: string, text: string): Finding => ({ check, status, text })
const withAdvice =
  (status: FindingStatus) =>
  (check: string, text: string, advice: string): Finding => ({ check, status, text, advice })

export const ok = of('ok')
export const skipped = of('skip')
export const warning = withAdvice('warn')
export const failure = withAdvice('fail')
