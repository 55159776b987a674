import { createHash } from 'node:crypto'
import type { ResolvedOptions } from './options.js'

const CHARS = 12

/**
 * A hash of the options that all nodes of one system must share: with others, a node logs, remembers or accepts something
 * else, and its clients miss messages that those of other nodes get. It reveals no value.
 */
export function sharedOptionsFingerprint(options: ResolvedOptions): string {
  const { history, historyMaxMessages, historyMaxBytes, retain, retainMaxKeys, retainMaxBytes } = options
  const { dedupeWindowMs, dedupeMaxIds, maxPayloadBytes, meta } = options
  const shared = { history, historyMaxMessages, historyMaxBytes, retain, retainMaxKeys, retainMaxBytes }
  const text = JSON.stringify({ ...shared, dedupeWindowMs, dedupeMaxIds, maxPayloadBytes, meta })
  return createHash('sha256').update(text).digest('base64url').slice(0, CHARS)
}
