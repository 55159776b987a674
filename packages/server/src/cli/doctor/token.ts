import { decodeJwt } from 'jose'
import { WebMQError } from 'webmq-client/protocol'
import { parseGrants } from '../../identity/index.js'
import { inWords } from '../in-words.js'
import { type Finding, failure, ok, warning } from './finding.js'

/** Default of `jwt.clockToleranceS`. */
const CLOCK_TOLERANCE_S = 5
const SOON_S = 60

/** Looks at the claims of a token, without verifying it: only the server can. */
export function checkClaims(token: string): readonly Finding[] {
  let claims: ReturnType<typeof decodeJwt>
  try {
    claims = decodeJwt(token)
  } catch {
    const advice = 'A token is three parts of base64url with dots between; print one with webmq-server token create.'
    return [failure('token', 'it is not a signed JWT', advice)]
  }
  return [checkTimes(claims), checkGrants(claims)]
}

function checkTimes({ exp, nbf, iat }: ReturnType<typeof decodeJwt>): Finding {
  const nowS = Date.now() / 1000
  const clocks = 'Compare the clocks of this machine and of the one that signs tokens.'
  if (typeof nbf === 'number' && nbf - nowS > CLOCK_TOLERANCE_S) {
    return failure('token', `it is valid only in ${inWords(nbf - nowS)} (nbf)`, clocks)
  }
  if (typeof iat === 'number' && iat - nowS > CLOCK_TOLERANCE_S) {
    return warning('token', `it was issued ${inWords(iat - nowS)} in the future (iat)`, clocks)
  }
  if (typeof exp !== 'number') {
    return warning('token', 'it never expires (no exp)', 'Issue tokens of minutes or hours; clients renew them.')
  }
  const leftS = exp - nowS
  if (leftS <= 0) return failure('token', `it expired ${inWords(-leftS)} ago`, 'Get a new one.')
  if (leftS < SOON_S) {
    return warning('token', `it expires in ${inWords(leftS)}`, 'Issue tokens that live longer than a reconnect takes.')
  }
  return ok('token', `it expires in ${inWords(leftS)}`)
}

function checkGrants({ webmq }: ReturnType<typeof decodeJwt>): Finding {
  try {
    const patterns = parseGrants(webmq).flatMap(({ keys, allow }) => keys.map((key) => `${allow.join('+')} ${key}`))
    if (patterns.length > 0) return ok('grants', patterns.slice(0, 5).join(', ') + (patterns.length > 5 ? ', …' : ''))
    return warning('grants', 'the token grants nothing', 'Add the claim webmq.grants; docs/security.md shows it.')
  } catch (error) {
    if (!(error instanceof WebMQError)) throw error
    return failure('grants', error.message, 'Correct the claim webmq; docs/security.md shows it.')
  }
}
