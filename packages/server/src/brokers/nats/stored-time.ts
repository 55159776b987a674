import { fingerprintOfTime } from '../log/fingerprint.js'

const NS_PER_MS = 1_000_000n
const DIGITS_BELOW_SECOND = 9
const ZERO = 0x30

/**
 * Fingerprint of a message of a stream.
 * @param time When JetStream stored it: Unix time in nanoseconds, digits. No other message was stored at that time.
 */
export function fingerprintOfStored(time: string): number {
  const end = time.length - DIGITS_BELOW_SECOND
  let seconds = 0
  let nanoseconds = 0
  for (let at = 0; at < end; at++) seconds = seconds * 10 + time.charCodeAt(at) - ZERO
  for (let at = Math.max(0, end); at < time.length; at++) nanoseconds = nanoseconds * 10 + time.charCodeAt(at) - ZERO
  return fingerprintOfTime(seconds, nanoseconds)
}

/** Unix time in nanoseconds, digits, of a time as JetStream's answers have it; `undefined` when it is none, or before 1970. */
export function nanosecondsOf(text: string): string | undefined {
  const [, seconds = '', fraction = ''] = /^([^.Z]+)(?:\.(\d{1,9}))?Z$/.exec(text) ?? []
  const ms = Date.parse(`${seconds}Z`)
  if (Number.isNaN(ms) || ms < 0) return undefined
  return String(BigInt(ms) * NS_PER_MS + BigInt(fraction.padEnd(DIGITS_BELOW_SECOND, '0')))
}
