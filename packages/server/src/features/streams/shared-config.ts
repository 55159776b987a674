import type { StreamFold } from './fold.js'

/** What the start of a stream with many writers says. */
export interface StreamConfig {
  readonly contentType: string
  /** The stream is gone when nobody has used it for so long. */
  readonly ttlSeconds?: number
  /** The stream is gone then. */
  readonly expiresAt?: string
  /** It is complete with its next message: its first content, or its end. */
  readonly isPending?: true
}

/** Of a stream with many writers. Another program may have written it. */
export function sharedConfigOf({ meta }: Pick<StreamFold, 'meta'>): StreamConfig {
  const { contentType, ttlSeconds, expiresAt, isPending } = Object(
    meta === undefined ? undefined : JSON.parse(meta.text),
  ) as Readonly<Record<string, unknown>>
  return {
    contentType: typeof contentType === 'string' ? contentType : 'application/octet-stream',
    ...(typeof ttlSeconds === 'number' ? { ttlSeconds } : undefined),
    ...(typeof expiresAt === 'string' && !Number.isNaN(Date.parse(expiresAt)) ? { expiresAt } : undefined),
    ...(isPending === true ? { isPending } : undefined),
  }
}

/** When its life is over, Unix time in milliseconds; infinite without a time to live, and for a stream with one writer. */
export function endMsOf(fold: Pick<StreamFold, 'meta' | 'shared'>): number {
  if (fold.shared === undefined) return Number.POSITIVE_INFINITY
  const { ttlSeconds, expiresAt } = sharedConfigOf(fold)
  if (expiresAt !== undefined) return Date.parse(expiresAt)
  return ttlSeconds === undefined ? Number.POSITIVE_INFINITY : fold.shared.touchedMs + ttlSeconds * 1_000
}
