import { crc32 } from 'node:zlib'
import type { WriteKind } from 'webmq-client/protocol'
import { type Actor, isTrusted } from '../../kernel/identity/actor.js'
import { shortHash } from '../../kernel/publishing/draft.js'

/**
 * Whose a stream is, as its messages in the log say it: a user's, all anonymous clients', or the application's own. It stays the
 * same when a writer comes back, on any connection and node.
 */
export function ownerNameOf(author: Pick<Actor, 'door' | 'userId'>): string {
  if (isTrusted(author)) return 'server'
  return author.userId === undefined ? 'anonymous' : `user:${shortHash(author.userId)}`
}

/** Tells two messages of one number apart by what their writers sent, their kind included. */
export function checksumOf(kind: WriteKind, payload: Uint8Array, isBinary: boolean): number {
  return crc32(payload, crc32(isBinary ? `${kind} bytes` : kind))
}
