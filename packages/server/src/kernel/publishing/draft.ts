import * as crypto from 'node:crypto'
import { WebMQError } from 'webmq-client/protocol'
import { HookRefusal } from '../base/hook-refusal.js'
import type { OutboundMessage, PublishingConnection } from '../ports/broker.js'

/** A message as its author means it. A decoded `publish` of the protocol is one. */
export interface Draft {
  /** A valid key. */
  readonly key: string
  /** Bytes, borrowed for the duration of the call; the text form of the protocol's type never comes here. */
  readonly payload: Uint8Array | string
  /** Of the request that asks for an answer. Without one, nobody sends a refused message again. */
  readonly id?: string | undefined
  /** The author's id of the message, valid by `isMessageId`. */
  readonly messageId?: string | undefined
  /** It reaches live listeners only, and is in no log. */
  readonly ephemeral?: boolean | undefined
  /** The header `traceparent` of W3C Trace Context. One that is not valid is ignored. */
  readonly trace?: string | undefined
  /** `false`: not for the connection that publishes it. */
  readonly echo?: boolean | undefined
  /** Its place in a stream. The message id is then that of the stream, whoever writes it. */
  readonly place?: string | undefined
  /** These three: as in {@link MessageAttributes}. */
  readonly owner?: string | undefined
  readonly checksum?: number | undefined
  readonly isInterim?: boolean | undefined
  /** Throws when it may not be what a hook has made of it. */
  readonly assertChange?: ((changed: Pick<Draft, 'key' | 'payload'>, isBinary: boolean) => void) | undefined
}

export interface BatchDraft extends Draft {
  readonly isBinary: boolean
}

/** Memory of a waiting message beside its payload [P-7.8]: key, promises, and entries in several lists. */
export const PENDING_OVERHEAD_BYTES = 256

export function bytesOf({ payload }: Draft): Uint8Array {
  if (typeof payload === 'string') throw new TypeError('a decoded payload is bytes')
  return payload
}

/** Written out: spreading optional members costs more than the rest of a publish. */
export function outboundOf(
  key: string,
  payload: Uint8Array,
  isBinary: boolean,
  messageId: string | undefined,
  publisher: number | undefined,
  author: PublishingConnection | undefined,
): OutboundMessage {
  if (messageId === undefined)
    return publisher === undefined ? { key, payload, isBinary } : { key, payload, isBinary, publisher }
  if (author === undefined) return { key, payload, isBinary, messageId }
  if (publisher === undefined) return { key, payload, isBinary, messageId, author }
  return { key, payload, isBinary, messageId, author, publisher }
}

/** Names the message, in an error with the same code. The refusal of a hook stays as it is. */
export function refuseItem(index: number, error: unknown): never {
  if (!(error instanceof WebMQError) || error instanceof HookRefusal) throw error
  throw new WebMQError(error.code, { message: `message ${index} of the batch: ${error.message}`, cause: error })
}

/** Whose message ids they are: two owners never suppress each other's messages [P-7.3]. `stream`: of whoever writes one. */
export type MessageOwner = 'server' | 'anonymous' | 'stream' | `user ${string}`

/**
 * The owner of a client's message ids.
 * @param userId `undefined` for a client without a user. All of these share one owner: a client that reconnects has a
 *   new connection, and its retry must still be found.
 */
export function clientOwner(userId: string | undefined): MessageOwner {
  return userId === undefined ? 'anonymous' : `user ${userId}`
}

const ID_CHARS = 22

/**
 * Derives the id that brokers compare, so that no broker gets text of a client or a token.
 *
 * @param key A valid key: it contains no space.
 * @param messageId The publisher's id, as {@link isMessageId} allows: it contains no space.
 * @returns 22 characters of `[A-Za-z0-9_-]`, the same on all nodes. Cost: 0.9 µs, without `crypto.hash` (before
 *   Node.js 20.12) 2.0 µs.
 */
export function brokerMessageId(owner: MessageOwner, key: string, messageId: string): string {
  // The owner is last because it may contain spaces.
  return shortHash(`${key} ${messageId} ${owner}`)
}

/** 22 characters of `[A-Za-z0-9_-]`, by which a text is known. */
export function shortHash(text: string): string {
  return sha256(text).slice(0, ID_CHARS)
}

const sha256: (text: string) => string =
  typeof crypto.hash === 'function'
    ? (text) => crypto.hash('sha256', text, 'base64url')
    : (text) => crypto.createHash('sha256').update(text).digest('base64url')
