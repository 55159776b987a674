import type { MessageMeta } from './meta.js'

/** Payload on the wire: a string for a text frame (JSON text), bytes for a binary frame. */
export type WirePayload = string | Uint8Array

/** What a writer may say of its stream. `beat`: it is alive, and has nothing to append. */
export type WriteKind = 'start' | 'append' | 'beat' | 'end' | 'fail' | 'stop'

/** A client message. `ok` and `error` answer to its `id`: 1-36 characters of `[A-Za-z0-9_-]`, chosen by the client. */
export type ClientMessage =
  | { readonly verb: 'auth'; readonly id: string; readonly token: string }
  | {
      readonly verb: 'listen'
      readonly id: string
      readonly pattern: string
      /** Replay the messages after this position. At most one of `since`, `last` and `rewindMs` is set. */
      readonly since?: string
      /** Replay the last `last` matching messages. */
      readonly last?: number
      /** Replay the messages of this time span. */
      readonly rewindMs?: number
      /** Replay only the last message of each key [P-17.1]; with `since`, of keys that changed after it. */
      readonly state?: true
      /** Of each message, one member of the group gets it [P-16.1]. Not together with a replay. */
      readonly group?: string
      /** With `group`: the members answer requests, and get no messages [P-16.5]. */
      readonly respond?: true
      /** What may be left out while the connection lags [P-6.12]; absent: the server decides. */
      readonly overflow?: ListenOverflow
      /** Its messages come with who published them, and when [P-15.1]. */
      readonly meta?: true
    }
  | {
      readonly verb: 'unlisten'
      readonly id: string
      readonly pattern: string
      /** This and the next as in `listen`: ends the membership, not the ordinary listen with the pattern. */
      readonly group?: string
      readonly respond?: true
    }
  | {
      readonly verb: 'publish'
      /** Absent: no acknowledgement (`-` on the wire). */
      readonly id?: string
      readonly key: string
      /** The message id, kept across retries; the server acknowledges a second message as a duplicate. */
      readonly messageId?: string
      /** `false`: the publishing connection does not get the message. */
      readonly echo: boolean
      /** The trace that the message belongs to [P-7.10]: a `traceparent` of W3C Trace Context. Not checked. */
      readonly trace?: string
      /** It reaches live listeners only: it is not logged [P-15.4]. */
      readonly ephemeral?: true
      readonly payload: WirePayload
    }
  | {
      readonly verb: 'history'
      readonly id: string
      readonly key: string
      /** Read the messages after this position. Not together with `rewindMs` and `before`. */
      readonly since?: string
      /** Read the newest messages before this position. Not together with `rewindMs`. */
      readonly before?: string
      /** Read the messages of this time span. */
      readonly rewindMs?: number
      /** Only the newest N of these. Not together with `limit`. */
      readonly last?: number
      /** Only the oldest N of these. */
      readonly limit?: number
      /** Newest first. */
      readonly reverse?: true
      /** Its messages come with who published them, and when [P-15.1]. */
      readonly meta?: true
    }
  | {
      readonly verb: 'presence'
      readonly id: string
      readonly key: string
      readonly op: 'enter'
      /** The client's secret name for its member [P-14.3]. */
      readonly member: string
      /** JSON text; not parsed. */
      readonly data?: string
    }
  | { readonly verb: 'presence'; readonly id: string; readonly key: string; readonly op: PresenceOp }
  | {
      readonly verb: 'request'
      readonly id: string
      readonly key: string
      /** Nobody waits for the reply after this time; absent: 10 s [P-16.6]. */
      readonly withinMs?: number
      readonly payload: WirePayload
    }
  | {
      readonly verb: 'reply'
      /** Of the request, as its `task` said it. Not acknowledged. */
      readonly id: string
      /** The payload is the JSON `{ code, message }` [P-16.8]. */
      readonly isError: boolean
      readonly payload: WirePayload
    }
  | {
      readonly verb: 'stream'
      readonly id: string
      readonly key: string
      /** Id of the stream, chosen by its writer [P-18.2]. */
      readonly stream: string
      readonly sequence: number
      readonly kind: WriteKind
      readonly payload: WirePayload
    }
  | {
      readonly verb: 'read'
      readonly id: string
      readonly key: string
      /** What the reader has of `stream`, up to this position [P-18.5]. */
      readonly since?: string | undefined
      readonly stream?: string | undefined
    }
  | { readonly verb: 'ping' }

/** Values of `overflow` of a listen [P-6.12]. */
export type ListenOverflow = 'disconnect' | 'drop-oldest' | 'latest' | 'latest-told'

/** Values of `op` other than `enter`. */
export type PresenceOp = 'leave' | 'get' | 'watch' | 'unwatch'

/** A present member. */
export interface PresenceMember {
  /**
   * Unique within the key, and the same across reconnects of its client. It does not help to impersonate the member.
   */
  readonly id: string
  /** User of the member's token; absent for anonymous members. */
  readonly userId?: string
  /** The member's own data. */
  readonly data?: unknown
}

/** A verb that a client may send. */
export type ClientVerb = ClientMessage['verb']

/** Why messages may be missing [P-8.4]. */
export type GapReason =
  | 'history-expired'
  | 'epoch-changed'
  | 'no-history'
  | 'limit'
  | 'slow-consumer'
  | 'broker-lost'
  | 'rules-differ'
  | 'refused'
  | 'conflated'

/** Limits that the server enforces, sent in `welcome`. */
export interface SessionLimits {
  readonly maxPayloadBytes: number
  readonly maxKeyBytes: number
  /** Words of a key or a pattern [P-3.7]. */
  readonly maxWords: number
  /** `#` in a pattern [P-3.7]. */
  readonly maxHashes: number
  readonly maxListensPerConnection: number
  /** Listens with a `#` before the last word of the pattern [P-6.2]. */
  readonly maxSearchListensPerConnection: number
  /** Requests of this connection that wait for a reply [P-16.6]. */
  readonly maxRequestsPerConnection: number
  /** Listens of all connections of the user to this node; absent: any. This and the following: [P-10.7]. */
  readonly maxListensPerUser?: number | undefined
  readonly maxPublishesPerSecond?: number | undefined
  readonly maxPublishBytesPerSecond?: number | undefined
  readonly maxPublishesPerSecondPerUser?: number | undefined
  readonly maxPublishBytesPerSecondPerUser?: number | undefined
  /** What may come at once after a rest, as the time in which it would come at these rates. */
  readonly publishBurstMs?: number | undefined
  /**
   * Publishes of this connection may wait for the broker up to this size in bytes; each counts its payload and 256 bytes
   * [P-7.8].
   */
  readonly maxPendingPublishBytes: number
  /** Silence after which the writer of a stream is given up [P-18.4]. */
  readonly streamLeaseMs?: number | undefined
  /** Bytes of one stream [P-18.2]. */
  readonly maxStreamBytes?: number | undefined
  /** Work that this connection may cause per second, in units of about a microsecond [P-10.6]. */
  readonly workPerSecond: number
  /** Work that this connection may cause at once after it was idle [P-10.6]. */
  readonly workBurst: number
  /** Time for which the server remembers message ids; 0: it ignores them [P-7.4]. */
  readonly dedupeWindowMs: number
  /** Message ids that the server remembers at most; 0: it ignores them [P-7.4]. */
  readonly dedupeMaxIds: number
}

/** The JSON of `welcome`. */
export interface Welcome {
  readonly protocol: 'webmq.v1'
  /** `required`: every verb but `auth` and `ping` is refused until `auth` succeeds. */
  readonly auth: 'none' | 'required' | 'done'
  readonly session: string
  readonly node: string
  readonly version: string
  /** A client that has sent nothing, or received nothing, for this time sends `ping` [P-9.2]. */
  readonly heartbeatMs: number
  readonly limits: SessionLimits
  /** Time until the token expires, if one was accepted with the upgrade request. */
  readonly expiresInMs?: number
}

/** A verb that a server may send. */
export type ServerVerb = ServerMessage['verb']

/** A server message. */
export type ServerMessage =
  | ({ readonly verb: 'welcome' } & Welcome)
  | {
      readonly verb: 'ok'
      readonly id: string
      readonly position?: string | undefined
      readonly recovered?: boolean | undefined
      readonly gap?: GapReason | undefined
      readonly replayed?: number | undefined
      /** More messages follow: ask again, with `since` set to this `position` [P-6.9]. */
      readonly more?: true | undefined
      /** The replay has the last message of each key [P-17.2]. */
      readonly state?: true | undefined
      readonly duplicate?: boolean
      /** What holds for the listen, unless it is `disconnect` [P-6.12]; not decoded. */
      readonly overflow?: ListenOverflow
      /** The verb's JSON result, parsed. */
      readonly result?: unknown
    }
  | {
      readonly verb: 'error'
      /** Absent if the refused message had no readable id. */
      readonly id?: string | undefined
      readonly code: string
      readonly message: string
      readonly retryable: boolean
      readonly docs: string
      /** Of a publish: it is to be sent again. What is sent before this time has passed is refused too [P-10.7]. */
      readonly retryAfterMs?: number | undefined
      /** The listen that the server has ended [P-5.5]. */
      readonly pattern?: string | undefined
      /** The key at which the server has ended presence [P-5.5]. */
      readonly key?: string | undefined
    }
  | {
      readonly verb: 'message'
      readonly key: string
      /** Absent if the message is not in a log [P-6.3]. */
      readonly position?: string | undefined
      readonly replayed: boolean
      /** Absent unless the connection has asked for it, and the server has stamped the message. */
      readonly meta?: MessageMeta | undefined
      readonly payload: WirePayload
    }
  | {
      readonly verb: 'presence'
      readonly key: string
      readonly enter?: readonly PresenceMember[]
      readonly update?: readonly PresenceMember[]
      /** Ids of the members that left. */
      readonly leave?: readonly string[]
    }
  | {
      /** A message for this member of a queue group [P-16.3]. */
      readonly verb: 'task'
      readonly group: string
      readonly pattern: string
      readonly key: string
      /** Present for a request: the id to `reply` to, within this time. */
      readonly request?: string
      readonly withinMs?: number
      readonly payload: WirePayload
    }
  | {
      /** The outcome of a `request`, after its `ok` [P-16.7]. */
      readonly verb: 'reply'
      readonly id: string
      readonly isError: boolean
      readonly payload: WirePayload
    }
  | {
      /** The server has ended a membership in a queue group [P-16.4]. */
      readonly verb: 'ended'
      readonly group: string
      readonly pattern: string
      readonly respond?: true
      readonly code: string
      readonly message: string
    }
  | { readonly verb: 'gap'; readonly pattern: string; readonly reason: GapReason }
  | { readonly verb: 'expiring'; readonly inMs: number }
  | {
      readonly verb: 'pong'
      /** Everything live up to this position that the connection listens to was sent before [P-9.7]. */
      readonly position?: string | undefined
    }
  | { readonly verb: 'bye'; readonly code: number; readonly retryAfterMs?: number | undefined }
