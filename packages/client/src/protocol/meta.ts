/** Who published a message, and when, as its server says [P-15.2]. */
export interface MessageMeta {
  /** User of the publisher; absent for anonymous clients and for servers. */
  readonly userId?: string
  /** When the server took the message, Unix time in milliseconds, by the server's clock. */
  readonly timeMs?: number
  /** Names the message: the same for all who get it. */
  readonly id?: string
}

/** The options of a `message`, each with a space before it; empty when the server has not stamped it. ASCII. */
export function encodeMeta({ userId, timeMs, id }: MessageMeta): string {
  if (timeMs === undefined) return ''
  // A user id is any text, and an option has visible ASCII alone.
  const user = userId === undefined ? '' : ` user=${encodeURIComponent(userId)}`
  return `${user} time=${timeMs}${id === undefined ? '' : ` id=${id}`}`
}

/** Reads the options of a `message`; `undefined` if the server has not stamped it. */
export function decodeMeta(options: readonly string[]): MessageMeta | undefined {
  const meta: { userId?: string; timeMs?: number; id?: string } = {}
  for (const option of options) {
    const [name, value = ''] = option.split('=')
    if (name === 'user') meta.userId = decodeURIComponent(value)
    if (name === 'time') meta.timeMs = Number(value)
    if (name === 'id') meta.id = value
  }
  return meta.timeMs === undefined ? undefined : meta
}
