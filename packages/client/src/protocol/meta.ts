import { parseCount } from './fields.js'

/** Who published a message, and when, as its server says [P-15.2]. */
export interface MessageMeta {
  /** User of the publisher; absent for anonymous clients and for servers. */
  readonly userId?: string | undefined
  /** When the server took the message, Unix time in milliseconds, by the server's clock. */
  readonly timeMs?: number | undefined
  /** Names the message: the same for all who get it. */
  readonly id?: string | undefined
  /** Its place in a stream [P-18.1], with or without the rest. */
  readonly stream?: string | undefined
}

/** The options of a `message`, each with a space before it; empty when the server has not stamped it. ASCII. */
export function encodeMeta({ userId, timeMs, id, stream }: MessageMeta): string {
  const place = stream === undefined ? '' : ` stream=${stream}`
  if (timeMs === undefined) return place
  // A user id is any text, and an option has visible ASCII alone.
  const user = userId === undefined ? '' : ` user=${encodeURIComponent(userId)}`
  return `${user} time=${timeMs}${id === undefined ? '' : ` id=${id}`}${place}`
}

/**
 * Reads the options of a `message`; `undefined` if the server has not stamped it, or if its user cannot be decoded. Such a
 * message must still arrive, and without its user it would look like one of an anonymous client [P-15.2].
 */
export function decodeMeta(options: readonly string[]): MessageMeta | undefined {
  const { user, time, id, stream } = Object.fromEntries(options.map((option) => option.split('=')))
  try {
    return (
      (stream || time) && { userId: user && decodeURIComponent(user), timeMs: time && parseCount(time), id, stream }
    )
  } catch {
    // `decodeURIComponent` reports a bad encoding only by throwing.
    return undefined
  }
}
