import { createHash } from 'node:crypto'

/** One present user or device at a key. Immutable. */
export interface Member {
  /** Unique within the key; see {@link memberIdOf}. */
  readonly id: string
  /** The member in the form that clients get: `{"id":…,"userId":…,"data":…}`. Members with equal text are equal. */
  readonly json: string
  /** Bytes of `json`. */
  readonly byteLength: number
}

/** Characters of the SHA-256 hash, in base64url, that form an id: 132 bits, which cannot be guessed. */
const ID_CHARS = 22

/**
 * The id that others see. It is a hash of the client's name for the member, its user and the key, and reveals none of
 * them. So an id that was seen cannot be used to take over the member, not even an anonymous one.
 *
 * @param name Chosen by the client, which keeps it secret.
 */
export function memberIdOf(key: string, userId: string | undefined, name: string): string {
  const text = JSON.stringify([key, userId ?? null, name])
  return createHash('sha256').update(text).digest('base64url').slice(0, ID_CHARS)
}

/** @param data JSON text; absent for a member without data. */
export function createMember(id: string, userId: string | undefined, data: string | undefined): Member {
  let json = `{"id":${JSON.stringify(id)}`
  if (userId !== undefined) json += `,"userId":${JSON.stringify(userId)}`
  if (data !== undefined) json += `,"data":${data}`
  return memberOf(id, `${json}}`)
}

/** A member received from another node. */
export function memberOf(id: string, json: string): Member {
  return { id, json, byteLength: Buffer.byteLength(json) }
}
