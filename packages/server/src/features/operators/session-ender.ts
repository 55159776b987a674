import type { Revocations } from '../../kernel/identity/revocations.js'
import type { Session } from '../../kernel/session/session.js'
import type { SessionTable } from '../../kernel/session/table.js'
import type { DisconnectCode, DisconnectTarget } from './operator-message.js'

/** Revocations within this time share one walk over the sessions, so that thousands of them cost few walks. */
const WALK_INTERVAL_MS = 20

/** Ends sessions of this node because an operator asked for it. */
export class SessionEnder {
  readonly #sessions: SessionTable
  #timer: NodeJS.Timeout | undefined

  constructor(sessions: SessionTable) {
    this.#sessions = sessions
  }

  /** Ends the sessions of a target, and returns their number. Cost: O(sessions), cheap for each. */
  disconnect({ by, value }: DisconnectTarget, code: DisconnectCode): number {
    let count = 0
    for (const session of this.#sessions) {
      if (session.isClosed || targetOf(session, by) !== value) continue
      session.end(code)
      count++
    }
    return count
  }

  /** Soon ends the sessions whose tokens are revoked. */
  revoked(revocations: Pick<Revocations, 'covers'>): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      for (const session of this.#sessions) {
        const { identity } = session
        if (identity !== undefined && revocations.covers(identity)) session.end('E_TOKEN_REVOKED')
      }
    }, WALK_INTERVAL_MS)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}

function targetOf(session: Session, by: DisconnectTarget['by']): string | undefined {
  if (by === 'user') return session.userId
  return by === 'session' ? session.id : session.address
}
