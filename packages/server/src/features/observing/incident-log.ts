import { ERRORS, type ErrorCode, type ErrorSpec } from 'webmq-client/protocol'
import { LogPace } from '../../kernel/base/log-pace.js'
import type { Logger } from '../../kernel/base/logger.js'
import type { Actor } from '../../kernel/identity/actor.js'
import type { Observer } from './observer.js'

export interface IncidentLogContext {
  readonly logger: Pick<Logger, 'warn' | 'info'>
  /** A clock in milliseconds. */
  readonly now: () => number
}

/** Clients cause these lines, so each kind is logged once in this time, with the number of others. */
const LOG_INTERVAL_MS = 10_000

const SLOW_CONSUMER_CODE = (ERRORS.E_SLOW_CONSUMER as ErrorSpec).closeCode
const LIMIT_CODES: ReadonlySet<ErrorCode> = new Set(
  (Object.keys(ERRORS) as ErrorCode[]).filter((code) => code.endsWith('_LIMIT') || code === 'E_PAYLOAD_TOO_LARGE'),
)
/** Codes of a token that was refused, or did not come. */
const TOKEN_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'E_AUTH_TIMEOUT',
  'E_TOKEN_EXPIRED',
  'E_TOKEN_INVALID',
  'E_TOKEN_REVOKED',
])

/** Logs what an operator should look at: limits that are reached, refused tokens, slow consumers. */
export function incidentLog({ logger, now }: IncidentLogContext): Observer {
  const paces = new Map<string, LogPace>()
  const log = (kind: string, message: string, fields: () => object) => {
    const pace = paces.get(kind) ?? new LogPace(LOG_INTERVAL_MS)
    paces.set(kind, pace)
    const others = pace.take(1, now())
    if (others === undefined) return
    // Every page that was left open over night comes back with an expired token.
    const level = kind === 'E_TOKEN_EXPIRED' ? 'info' : 'warn'
    logger[level]({ ...fields(), others }, message)
  }
  return {
    refused: (session, action, code) => {
      if (LIMIT_CODES.has(code)) log(code, 'a client has reached a limit', () => ({ code, action, ...whoOf(session) }))
      else if (TOKEN_CODES.has(code)) log(code, 'a token was refused', () => ({ code, ...whoOf(session) }))
    },
    upgradeRefused: ({ address }, code) => {
      if (LIMIT_CODES.has(code)) log(code, 'a client has reached a limit', () => ({ code, action: 'connect', address }))
    },
    disconnected: (session, code, _reason, durationMs) => {
      if (code !== SLOW_CONSUMER_CODE) return
      log('slow', 'a client read too slowly and was disconnected', () => ({ ...whoOf(session), durationMs }))
    },
  }
}

function whoOf({ id, userId, address }: Actor): object {
  return { session: id === '' ? undefined : id, user: userId, address }
}
