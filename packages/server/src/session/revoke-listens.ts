import { WebMQError } from 'webmq-client/protocol'
import { isListener, isMember } from '../identity/access.js'
import type { Session } from './session.js'

/** Ends the listens, the memberships and the presence that the session's new identity does not allow, and tells the client. */
export function revokeListens(session: Session): void {
  const { listens, groups, presence } = session.held
  const { observer } = session.services
  const mayListen = (pattern: string) => isListener(session, pattern)
  for (const pattern of listens?.revoke(mayListen) ?? []) {
    observer?.unlistened?.(session, pattern)
    tell(session, `listen ${pattern}`, { pattern })
  }
  for (const { kind, group, pattern } of groups?.revoke(mayListen) ?? []) {
    observer?.unlistened?.(session, pattern)
    const { code, message } = noLonger(`listen ${pattern}`)
    session.reply({ verb: 'ended', group, pattern, ...(kind === 'respond' ? { respond: true } : {}), code, message })
  }
  for (const key of presence?.revoke((key) => isMember(session, key), mayListen) ?? [])
    tell(session, `presence ${key}`, { key })
}

function tell(session: Session, what: string, names: { readonly pattern: string } | { readonly key: string }): void {
  const { code, message, retryable, docs } = noLonger(what)
  session.reply({ verb: 'error', code, message, retryable, docs, ...names })
}

function noLonger(what: string): WebMQError {
  return new WebMQError('E_FORBIDDEN', { detail: `${what}, no longer granted` })
}
