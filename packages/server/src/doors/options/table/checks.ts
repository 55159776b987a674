import { unixPathOf } from '../../../kernel/ports/unix-socket.js'

/** Node fires a timer at once when its delay exceeds 31 bits, a little more than 24 days. */
export const MAX_TIMER_MS = 24 * 86_400_000
/** Shorter secrets can be found by trying. */
const MIN_SECRET_BYTES = 16
export const MIB = 1024 ** 2
export const GIB = 1024 ** 3
/** A key that no cache has is compared with each of them. */
export const MAX_URGENT_PATTERN_COUNT = 100

/** What systems take of a path. */
const MAX_SOCKET_PATH_BYTES = 103

export function checkHost(value: string): string | undefined {
  return /^[^\s/]+$/.test(value) ? undefined : 'an IP address or a host name'
}

export function checkHostOrSocket(value: string): string | undefined {
  const path = unixPathOf(value)
  if (path?.startsWith('/') && Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES) return undefined
  const isHost = path === undefined && checkHost(value) === undefined
  return isHost
    ? undefined
    : `an IP address, a host name, or unix: and an absolute path of at most ${MAX_SOCKET_PATH_BYTES} bytes`
}

export function notEmpty(value: string): string | undefined {
  return value === '' ? 'a text that is not empty' : undefined
}

export function checkFileName(value: string): string | undefined {
  return value === '' ? 'the name of a file' : undefined
}

export function longEnough(secret: string): string | undefined {
  return Buffer.byteLength(secret) < MIN_SECRET_BYTES ? `a secret of at least ${MIN_SECRET_BYTES} bytes` : undefined
}

export function isHttpUrl(value: string): boolean {
  return URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)
}
