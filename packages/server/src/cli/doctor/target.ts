import { WebMQError } from 'webmq-client/protocol'
import { isLoopback } from '../../identity/loopback.js'

/** What `doctor` examines, and how patiently. */
export interface DoctorTarget {
  /** With the scheme `ws:` or `wss:`. */
  readonly url: URL
  /** Without the brackets of an IPv6 address. */
  readonly host: string
  readonly port: number
  readonly isSecure: boolean
  readonly origin?: string
  readonly token?: string
  /** PEM of authorities to trust in addition to those of Node. */
  readonly ca?: string
  /** For each step. */
  readonly timeoutMs: number
  readonly idleMs?: number
}

/** @throws {WebMQError} `E_OPTION_INVALID`: not a URL of a server. */
export function parseServerUrl(text: string): Pick<DoctorTarget, 'url' | 'host' | 'port' | 'isSecure'> {
  const full = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `ws://${text}`
  const url = URL.canParse(full) ? new URL(full.replace(/^http/i, 'ws')) : undefined
  if (url === undefined || !/^wss?:$/.test(url.protocol) || url.hostname === '') {
    const detail = `${JSON.stringify(text)} is not the URL of a server, such as wss://example.com/ws`
    throw new WebMQError('E_OPTION_INVALID', { detail })
  }
  if (url.username !== '' || url.password !== '') {
    throw new WebMQError('E_OPTION_INVALID', { detail: 'the URL has a password; WebMQ wants a token: --token' })
  }
  const isSecure = url.protocol === 'wss:'
  const port = url.port === '' ? (isSecure ? 443 : 80) : Number(url.port)
  return { url, host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port, isSecure }
}

/** @throws {WebMQError} `E_OPTION_INVALID`: browsers never send this origin. */
export function parseOrigin(text: string): string {
  if (text === 'null' || (URL.canParse(text) && new URL(text).origin === text)) return text
  const origin = URL.canParse(text) ? new URL(text).origin : 'null'
  const hint = origin === 'null' ? '' : `; browsers send ${origin}`
  throw new WebMQError('E_OPTION_INVALID', { detail: `--origin: ${JSON.stringify(text)} is not an origin${hint}` })
}

/** The URL with another scheme or path, for advice. */
export function urlWith({ url }: DoctorTarget, { scheme, path }: { scheme?: 'ws' | 'wss'; path?: string }): string {
  const other = new URL(url)
  if (path !== undefined) other.pathname = path
  return scheme === undefined ? other.href : other.href.replace(/^wss?/, scheme)
}

/** Whether others could read what is sent: a token must not be. */
export function isPrivate({ isSecure, host }: DoctorTarget): boolean {
  return isSecure || isLoopback(host)
}
