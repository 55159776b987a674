/** Node fires a timer at once when its delay exceeds 31 bits, a little more than 24 days. */
export const MAX_TIMER_MS = 24 * 86_400_000
/** Shorter secrets can be found by trying. */
const MIN_SECRET_BYTES = 16
export const MIB = 1024 ** 2
export const GIB = 1024 ** 3

export function checkHost(value: string): string | undefined {
  return /^[^\s/]+$/.test(value) ? undefined : 'an IP address or a host name'
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
