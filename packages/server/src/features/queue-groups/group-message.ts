/**
 * What a member takes: every message of the pattern (`listen`), or requests that it answers (`respond`).
 */
export type GroupKind = 'listen' | 'respond'

/** What names a queue group: members of one kind, group and pattern share its messages. */
export interface GroupName {
  readonly kind: GroupKind
  readonly group: string
  readonly pattern: string
}

export interface GroupMessage {
  readonly key: string
  /** Valid until the member has returned. */
  readonly payload: Uint8Array
  readonly isBinary: boolean
}

export interface HandOverMessage extends GroupMessage {
  readonly messageId?: string | undefined
}

/** A request, as the asking node knows it. */
export interface Asked {
  readonly number: number
  readonly withinMs: number
}

/** A request as its responder gets it. */
export interface RequestTicket {
  /** Names the request on the responder's node: 1 to 36 characters of `[A-Za-z0-9_-]`. */
  readonly id: string
  /** Nobody waits for the reply after this time. */
  readonly withinMs: number
}

/** A member of a queue group on this node: a connection, or a function of the process. */
export interface GroupMember {
  /** Under which name its client is counted; absent: it is of the process. */
  readonly client?: string
  /** Whether it has more to read than others should wait behind. */
  readonly isLagging: boolean
  /**
   * Hands a message over. MUST NOT call the broker.
   * @param ticket Present for a request.
   * @returns `false` if it cannot: another member gets it.
   */
  take(name: GroupName, message: GroupMessage, ticket: RequestTicket | undefined): boolean
}

/** The id of a queue group within a node and between nodes. */
export function groupIdOf({ kind, group, pattern }: GroupName): string {
  return `${kind === 'listen' ? 'l' : 'r'} ${group} ${pattern}`
}
