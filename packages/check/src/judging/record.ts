/**
 * What one run has seen: written by the actors, read by the judge. It is plain data and can be saved as JSON.
 *
 * All times are those of one clock, in milliseconds since the run began. Everything that one connection has received is
 * in the order in which it came.
 */
export interface RunRecord {
  readonly connections: ConnectionRecord[]
  readonly publishers: PublisherRecord[]
  readonly listeners: ListenerRecord[]
  readonly reads: ReadRecord[]
  readonly members: MemberRecord[]
  readonly streams: StreamRecord[]
  readonly views: ViewRecord[]
  readonly stops: StopRecord[]
  readonly faults: FaultRecord[]
  /** When the publishers had stopped and the listeners were given no more time. */
  endedAtMs: number
}

/** A node as the actors see it. */
export interface NodeAddress {
  /** For people and for {@link FaultRecord.node}. A node that is started again keeps its name. */
  readonly name: string
  /** `ws://…`, of the node itself or of a link in front of it. */
  readonly url: string
  /** Port of a link on this machine that leads there. Default: no link. */
  readonly via?: number
  /** Asked for each connection. Default: none. */
  readonly token?: () => string
}

/** One WebSocket, from the handshake to the close. */
export interface ConnectionRecord {
  /** Its index in {@link RunRecord.connections}. */
  readonly number: number
  /** Name of the publisher, listener or reader. */
  readonly owner: string
  readonly node: string
  readonly beganAtMs: number
  /** When `welcome` came. */
  welcomeAtMs?: number
  /** Name that the node gave itself in `welcome`. */
  welcomeNode?: string
  /** `bye <code> [retryAfterMs]`. */
  bye?: { readonly code: number; readonly retryAfterMs: number | undefined; readonly atMs: number }
  /** `by` says who ended it: `client` before anything came from the server. */
  closed?: { readonly code: number; readonly by: 'client' | 'server'; readonly atMs: number }
  /** Why the client ended it, if it did: `cut`, `move`, `no answer`, `no pong`, `stop`. */
  reason?: string
  readonly requests: RequestRecord[]
  /** Times in which the client did not read. */
  readonly stalls: Span[]
  /** What the server sent that `webmq.v1` does not allow, in words. */
  readonly breaches: { readonly atMs: number; readonly text: string }[]
}

export interface RequestRecord {
  readonly id: string
  readonly verb: 'listen' | 'unlisten' | 'publish' | 'history' | 'stream' | 'read' | 'request' | 'ping'
  readonly sentAtMs: number
  /** When `ok`, `error` or `pong` came. */
  answeredAtMs?: number
}

export interface Span {
  readonly fromMs: number
  /** Missing while it lasts. */
  untilMs?: number
}

export interface PublisherRecord {
  readonly name: string
  /** In the order of the first publish. */
  readonly messages: MessageRecord[]
  /** Its own messages, live, on connections that publish with `noecho` and listen to its keys. */
  readonly echoes: EchoRecord[]
}

export interface EchoRecord {
  /** {@link ConnectionRecord.number} */
  readonly connection: number
  readonly atMs: number
  /** {@link MessageRecord.id} */
  readonly id: string
}

/** A message with an id of its own. Its payload is `{"id":…}` and padding. */
export interface MessageRecord {
  readonly id: string
  /** Place among the messages of its publisher, from 0. */
  readonly sequence: number
  readonly key: string
  readonly payloadBytes: number
  readonly isNoecho: boolean
  readonly attempts: AttemptRecord[]
}

/** One `publish` of a message. */
export interface AttemptRecord {
  /** {@link ConnectionRecord.number} */
  readonly connection: number
  readonly sentAtMs: number
  settledAtMs?: number
  /** `unanswered`: the connection ended before the answer. Whether the broker has the message is not known. */
  outcome: 'pending' | 'ok' | 'refused' | 'unanswered'
  /** Of the `ok`. */
  position?: string
  isDuplicate?: boolean
  /** Of the `error`. */
  code?: string
  isRetryable?: boolean
}

/** A listener with all its listens, over all its connections. */
export interface ListenerRecord {
  readonly name: string
  /** Named by their index in the events. */
  readonly patterns: readonly string[]
  /**
   * Its events are what a client gives its user: each message belongs to one listen, and what is between client and server
   * is not among them. Default: what a server sends.
   */
  readonly isOfClient?: boolean
  readonly events: ListenerEvent[]
}

export type ListenerEvent = { readonly atMs: number; readonly connection: number } & (
  | AskedEvent
  | OkEvent
  | MessageEvent
  | { readonly what: 'refused'; readonly listen: number; readonly code: string; readonly isRetryable: boolean }
  | { readonly what: 'gap'; readonly listen: number; readonly reason: string }
  | { readonly what: 'pong'; readonly position: string | undefined }
  /** A listen of a client was ended by its user. */
  | { readonly what: 'left'; readonly listen: number }
  /** The connection ended; its listens are live no longer. */
  | { readonly what: 'ended' }
)

/** A `listen` was sent. */
export interface AskedEvent extends Selection {
  readonly what: 'asked'
  readonly listen: number
  /** Whether it continues the replay of the `ok` with `more` before it. */
  readonly isPage: boolean
}

export interface Selection {
  readonly since?: string
  readonly rewindMs?: number
  readonly last?: number
  readonly limit?: number
  readonly isReverse?: boolean
}

/** A `listen` was answered. Its replayed messages are the next `replayed` events of the same connection. */
export interface OkEvent extends Answer {
  readonly what: 'ok'
  readonly listen: number
}

export interface Answer {
  readonly position: string | undefined
  readonly isRecovered: boolean
  readonly gap: string | undefined
  readonly replayed: number
  readonly isMore: boolean
}

export interface MessageEvent extends Received {
  readonly what: 'message'
  /** The listen to which a replayed message belongs. A live one belongs to every listen that matches. */
  readonly listen: number | undefined
  /** What a client says of it. On the wire, `listen` does. */
  readonly isReplay?: boolean
}

export interface Received {
  readonly key: string
  /** `epoch:offset`, or `-`. */
  readonly position: string
  /** {@link MessageRecord.id}, from the payload. Empty if the payload is not that of a publisher. */
  readonly id: string
  readonly payloadBytes: number
}

/** A read of the log that belongs to no listen: `history`, or `listen` with `since` of what is live already. */
export interface ReadRecord {
  readonly owner: string
  readonly verb: 'history' | 'listen'
  /** A key, or the pattern of a `listen`. */
  readonly pattern: string
  readonly asked: Selection
  /** All of them but the last said `more`. The last one too, if nobody asked on. */
  readonly pages: PageRecord[]
}

export interface PageRecord {
  readonly connection: number
  readonly askedAtMs: number
  /** What this page asked for: after the first, `since` the position before. */
  readonly asked: Selection
  /** When the last of its messages came; missing if the connection ended before. */
  settledAtMs?: number
  /** Missing if there was none, or an `error`. */
  answer?: Answer
  code?: string
  readonly messages: Received[]
}

/** A time in which a node had told that it has the member. */
export interface Membership extends Span {
  /** {@link NodeAddress.name} */
  readonly node: string
}

/** A member of a queue group with all that it was handed. */
export interface MemberRecord {
  readonly name: string
  readonly group: string
  readonly pattern: string
  /** From the `ok` to the end of the connection. */
  readonly memberships: Membership[]
  /** `id` as of {@link Received}; empty for a task of another group. */
  readonly tasks: { readonly atMs: number; readonly id: string; readonly key: string }[]
}

/** A stream with all that its writer has written, in order. */
export interface StreamRecord {
  readonly id: string
  readonly key: string
  readonly writer: string
  readonly writes: StreamWriteRecord[]
}

/** Its number is its place in {@link StreamRecord.writes}. */
export interface StreamWriteRecord {
  readonly kind: 'start' | 'append' | 'end' | 'stop'
  /** What an append adds. */
  readonly text: string
  readonly sentAtMs: number[]
  ackedAtMs?: number
  /** Of an error that is final. */
  code?: string
}

/** What a reader of a stream has at a time. */
export interface ViewRecord {
  readonly viewer: string
  readonly atMs: number
  readonly key: string
  /** Missing while the key has no stream. */
  readonly stream?: string
  readonly sequence: number
  readonly status: string
  readonly isCut: boolean
  readonly text: string
  /** What it had in the end. */
  readonly isLast: boolean
}

/** A request to the writer of a key to stop. */
export interface StopRecord {
  readonly token: string
  readonly key: string
  readonly viewer: string
  readonly askedAtMs: number
  /** `told`: a writer has replied. */
  outcome: 'pending' | 'told' | 'refused' | 'unanswered'
  /** When a writer was handed it. */
  readonly heardAtMs: number[]
}

/** What a fault may have been felt by. */
export type Touched = 'client-links' | 'broker-links' | 'peer-links' | 'node' | 'broker' | 'broker-data'

/** Something that was done to the system. */
export interface FaultRecord {
  /** For people: `kill node 1`, `freeze the link of node 2 to its broker`. */
  readonly name: string
  readonly fromMs: number
  /** When it was mended; what it has upset may take {@link Rules.settleMs} more. */
  untilMs: number
  readonly touches: readonly Touched[]
  /** {@link NodeAddress.name}; missing if it concerns all nodes. */
  readonly node?: string
}

/** A record of which nothing is known yet. */
export function createRunRecord(): RunRecord {
  return {
    connections: [],
    publishers: [],
    listeners: [],
    reads: [],
    members: [],
    streams: [],
    views: [],
    stops: [],
    faults: [],
    endedAtMs: Number.POSITIVE_INFINITY,
  }
}
