import { createHash } from 'node:crypto'

/** Somebody who is present at a key. Immutable. */
export interface Member {
  /** Unique within the key; see {@link memberIdOf}. */
  readonly id: string
  /** The whole member as clients get it: `{"id":…,"userId":…,"data":…}`. Two members are the same when this is. */
  readonly json: string
  /** Bytes of `json`. */
  readonly byteLength: number
}

/** Bytes of SHA-256, in base64url, of which an id consists: 132 bits are found by nobody. */
const ID_CHARS = 22

/**
 * The id under which others see a member. It is derived from what the client calls it, its user and the key, and tells none of
 * them: nobody can take over the member of another by having seen its id, anonymous members included.
 *
 * @param name As the client has chosen it, and keeps it to itself.
 */
export function memberIdOf(key: string, userId: string | undefined, name: string): string {
  const text = JSON.stringify([key, userId ?? null, name])
  return createHash('sha256').update(text).digest('base64url').slice(0, ID_CHARS)
}

/** @param data JSON text; absent when the member says nothing but that it is there. */
export function createMember(id: string, userId: string | undefined, data: string | undefined): Member {
  let json = `{"id":${JSON.stringify(id)}`
  if (userId !== undefined) json += `,"userId":${JSON.stringify(userId)}`
  if (data !== undefined) json += `,"data":${data}`
  return memberOf(id, `${json}}`)
}

/** A member as it came from another node. */
export function memberOf(id: string, json: string): Member {
  return { id, json, byteLength: Buffer.byteLength(json) }
}
