/** Payload as it stands on the wire: a string for a text frame (JSON text), bytes for a binary frame. */
export type WirePayload = string | Uint8Array

/** What a client sends. `id` answers to `ok` or `error`: 1-36 characters of `[A-Za-z0-9_-]`, chosen by the client. */
export type ClientMessage =
  | { readonly verb: 'auth'; readonly id: string; readonly token: string }
  | {
      readonly verb: 'listen'
      readonly id: string
      readonly pattern: string
      /** Replay what came after this position. At most one of `since`, `last` and `rewindMs` is given. */
      readonly since?: string
      /** Replay the last `last` matching messages. */
      readonly last?: number
      /** Replay what was logged within this time. */
      readonly rewindMs?: number
      readonly group?: string
    }
  | { readonly verb: 'unlisten'; readonly id: string; readonly pattern: string }
  | {
      readonly verb: 'publish'
      /** Absent: no acknowledgement is wanted (`-` on the wire). */
      readonly id?: string
      readonly key: string
      /** The message's own id, kept across retries; the server acknowledges a second one as a duplicate. */
      readonly messageId?: string
      /** `false`: the publishing connection does not get its own message. */
      readonly echo: boolean
      readonly payload: WirePayload
    }
  | {
      readonly verb: 'history'
      readonly id: string
      readonly key: string
      /** Read what came after this position. Not together with `rewindMs`. */
      readonly since?: string
      /** Read what was logged within this time. */
      readonly rewindMs?: number
      /** Of that, the newest so many messages. Not together with `limit`. */
      readonly last?: number
      /** Of that, the oldest so many. */
      readonly limit?: number
      /** The newest comes first. */
      readonly reverse?: true
    }
  | {
      readonly verb: 'presence'
      readonly id: string
      readonly key: string
      readonly op: 'enter'
      /** What the client calls its member, and tells nobody but the server [P-14.2]. */
      readonly member: string
      /** JSON text; not parsed. */
      readonly data?: string
    }
  | { readonly verb: 'presence'; readonly id: string; readonly key: string; readonly op: PresenceOp }
  | { readonly verb: 'ping' }

/** What `presence` asks for, beside `enter`. */
export type PresenceOp = 'leave' | 'get' | 'watch' | 'unwatch'

/** Somebody who is present at a key. */
export interface PresenceMember {
  /** Unique within the key, and the same over the reconnects of a client; nobody can take it who has only seen it. */
  readonly id: string
  /** Whose token it was; absent for the anonymous. */
  readonly userId?: string
  /** What the member says of itself. */
  readonly data?: unknown
}

/** A verb that a client may send. */
export type ClientVerb = ClientMessage['verb']

/** Why messages may be missing. */
export type GapReason = 'history-expired' | 'epoch-changed' | 'no-history' | 'limit' | 'slow-consumer' | 'broker-lost'

/** Limits that the server enforces, sent in `welcome`. */
export interface SessionLimits {
  readonly maxPayloadBytes: number
  readonly maxKeyBytes: number
  readonly maxListensPerConnection: number
}

/** The JSON of `welcome`. */
export interface Welcome {
  readonly protocol: 'webmq.v1'
  /** `required`: every verb but `auth` and `ping` is refused until `auth` succeeds. */
  readonly auth: 'none' | 'required' | 'done'
  readonly session: string
  readonly node: string
  readonly version: string
  /** The client is expected to be heard at least this often, and may expect the same of the server. */
  readonly heartbeatMs: number
  readonly limits: SessionLimits
  /** Time left until the token expires, when one was accepted with the upgrade request. */
  readonly expiresInMs?: number
}

/** What a server sends. */
export type ServerMessage =
  | ({ readonly verb: 'welcome' } & Welcome)
  | {
      readonly verb: 'ok'
      readonly id: string
      readonly position?: string
      readonly recovered?: boolean
      readonly gap?: GapReason
      readonly replayed?: number
      /** There is more: ask again, with `since` this `position` [P-6.9]. */
      readonly more?: true
      readonly duplicate?: boolean
      /** The verb's JSON result, parsed. */
      readonly result?: unknown
    }
  | {
      readonly verb: 'error'
      /** Absent when the refused message carried no readable id. */
      readonly id?: string
      readonly code: string
      readonly message: string
      readonly retryable: boolean
      readonly docs: string
      /** The listen that the server has ended [P-5.5]. */
      readonly pattern?: string
      /** The key at which the server has ended presence [P-5.5]. */
      readonly key?: string
    }
  | {
      readonly verb: 'message'
      readonly key: string
      /** As on the wire: full, or, without a `:`, relative to the epoch that the connection was given [P-8.8]. */
      readonly position?: string
      readonly replayed: boolean
      readonly payload: WirePayload
    }
  | {
      readonly verb: 'presence'
      readonly key: string
      readonly enter?: readonly PresenceMember[]
      readonly update?: readonly PresenceMember[]
      /** Ids. */
      readonly leave?: readonly string[]
    }
  | { readonly verb: 'gap'; readonly pattern: string; readonly reason: GapReason }
  | { readonly verb: 'expiring'; readonly inMs: number }
  | {
      readonly verb: 'pong'
      /** Up to here, everything live that the connection listens to has been sent before [P-9.7]. Always full. */
      readonly position?: string
    }
  | { readonly verb: 'bye'; readonly code: number; readonly retryAfterMs?: number }
