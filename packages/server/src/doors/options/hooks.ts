import type { Claims, Grant } from '../../kernel/identity/index.js'

/** What a hook answers, now or later. Nothing means: go on as asked. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function without `return` is a hook that says nothing.
export type HookAnswer<Answer> = Answer | undefined | void | Promise<Answer | undefined | void>

/** Refuses an action. */
export interface Refusal {
  readonly refuse: {
    /** `E_` and 1 to 40 characters of `[A-Z0-9_]`; default `E_FORBIDDEN`. */
    readonly code?: string
    /** Text for the client, at most 200 characters. */
    readonly message?: string
  }
}

/** Who asks. */
export interface HookClient {
  /** Id of the session, as in `welcome` and in log lines. */
  readonly session: string
  /** `undefined` for anonymous clients. */
  readonly user: string | undefined
  /** Claims of the verified token; `undefined` without one. */
  readonly claims: Claims | undefined
  /** IP address of the client. */
  readonly address: string
}

/** A client wants to connect, or to renew its token. */
export interface ConnectRequest extends HookClient {
  /** Path of the upgrade request. */
  readonly path: string
  /** Query without `?`, as sent; empty when absent. */
  readonly query: string
  /** Headers of the upgrade request, with names in lower case. Empty for a renewal. */
  readonly headers: Readonly<Record<string, string>>
  /** The connection is open already, and its client presents a new token. */
  readonly isRenewal: boolean
}

/** Gives the client an identity; each member replaces that of the token. */
export interface ConnectAnswer {
  /** User of the connection, at most 255 bytes. */
  readonly user?: string
  /** What the client may do. */
  readonly grants?: readonly Grant[]
  /** The connection ends after this time, unless its token expires before. */
  readonly expiresInMs?: number
}

/** A client wants to listen to a pattern, or to read the history of a key. */
export interface ListenRequest extends HookClient {
  /** `history` reads messages of one key and gets no later ones. */
  readonly op: 'listen' | 'history'
  /** The pattern; for `history`, the key. */
  readonly pattern: string
  /** Whether the client asks for earlier messages. */
  readonly isReplay: boolean
}

/** A message as a hook sees it. */
export interface HookMessage {
  readonly key: string
  /** Whether the payload is bytes; otherwise it is JSON text. */
  readonly isBinary: boolean
  /** The bytes, a copy of the hook's own. */
  readonly payload: Uint8Array
  /**
   * Parses the payload of a text message.
   * @throws {WebMQError} `E_PAYLOAD_INVALID` when it is not JSON.
   */
  readonly json: () => unknown
}

/** A client wants to publish a message. */
export interface PublishRequest extends HookClient, HookMessage {
  /** The message reaches live listeners only, and is in no log. */
  readonly isEphemeral: boolean
}

/** Changes a message before it is published. */
export interface PublishAnswer {
  /** Must be granted to the client, as the key that it named. */
  readonly key?: string
  /** Any JSON value, sent as text, or a `Uint8Array`, sent unchanged. */
  readonly payload?: unknown
}

/** A message is about to be delivered to the listeners of this node. */
export interface DeliverRequest extends HookMessage {
  /** Position in the log; absent when the message is not logged. */
  readonly position: string | undefined
}

/** Changes a message for the listeners of this node. */
export interface DeliverAnswer {
  /** Nobody on this node gets the message. */
  readonly drop?: boolean
  /** Any JSON value, sent as text, or a `Uint8Array`, sent unchanged. */
  readonly payload?: unknown
}

/** A client wants to enter a key, or to see who is there. */
export interface PresenceRequest extends HookClient {
  readonly op: 'enter' | 'get' | 'watch'
  readonly key: string
  /** The data of a member that enters, as JSON text that was not checked; `undefined` without any. */
  readonly dataText: string | undefined
  /**
   * Parses the data of a member that enters; `undefined` without any.
   * @throws {WebMQError} `E_PAYLOAD_INVALID` when it is not JSON.
   */
  readonly data: () => unknown
}

/** Changes a member that enters. */
export interface PresenceAnswer {
  /** Any JSON value. */
  readonly data?: unknown
}

/** A connection that had an identity has closed. */
export interface DisconnectNotice extends HookClient {
  /** WebSocket close code. */
  readonly code: number
  readonly reason: string
  /** Time that the connection was open. */
  readonly durationMs: number
}

/**
 * Functions that decide about what clients do. A function answers nothing, `{ refuse }`, or a change. An error, an answer
 * after `hookTimeoutMs` and an answer that makes no sense refuse this action alone, with `E_HOOK_FAILED`.
 *
 * Grants and limits are checked before a hook is asked, and again after it has changed something. While a hook takes its
 * time, later messages of the connection wait.
 */
export interface Hooks {
  /** Before `welcome`, and for every later token. The token is verified before. */
  readonly connect?: (request: ConnectRequest) => HookAnswer<Refusal | ConnectAnswer>
  readonly listen?: (request: ListenRequest) => HookAnswer<Refusal>
  readonly publish?: (request: PublishRequest) => HookAnswer<Refusal | PublishAnswer>
  /**
   * Once per message and node, for live messages and those of the log. Must answer at once. When it fails, the message is
   * dropped on this node, and its listeners are told of a gap.
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: as above.
  readonly deliver?: (message: DeliverRequest) => DeliverAnswer | undefined | void
  readonly presence?: (request: PresenceRequest) => HookAnswer<Refusal | PresenceAnswer>
  /** Nobody waits for it, and its answer counts for nothing. */
  readonly disconnect?: (notice: DisconnectNotice) => unknown
}

/** The name of a hook. */
export type HookName = keyof Hooks
