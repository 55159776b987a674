import { decodeJwt } from 'jose'
import { WebMQError } from 'webmq-client/protocol'
import { parseGrants } from '../../../kernel/identity/index.js'
import { isLoopback } from '../../../kernel/identity/loopback.js'
import { EXIT } from '../exit-codes.js'
import { inWords, paint, printable, type Terminal } from '../terminal.js'
import { checkHealth, checkOpenFiles } from './health.js'
import { checkName, checkPort, isHere } from './network.js'
import { checkTalk } from './talk.js'
import { type DoctorTarget, type Finding, type FindingStatus, failure, ok, warning } from './target.js'
import { checkTls } from './tls.js'
import { checkOrigin, checkUpgrade } from './upgrade.js'

const LABELS: Readonly<Record<FindingStatus, readonly [string, 'green' | 'yellow' | 'red' | 'dim']>> = {
  ok: ['ok', 'green'],
  warn: ['warn', 'yellow'],
  fail: ['FAIL', 'red'],
  skip: ['-', 'dim'],
}

/** Examines a server and prints each finding when it is there. Returns the exit code: `FAILED` if a check failed. */
export async function diagnose(target: DoctorTarget, json: boolean, terminal: Terminal): Promise<number> {
  return await printFindings(examine(target), json, terminal)
}

/** Prints each finding when it is there. Returns the exit code. */
export async function printFindings(
  findings: AsyncIterable<Finding>,
  json: boolean,
  terminal: Terminal,
): Promise<number> {
  let hasFailed = false
  for await (const finding of findings) {
    hasFailed ||= finding.status === 'fail'
    terminal.stdout.write(json ? `${JSON.stringify(finding)}\n` : lineOf(finding, terminal))
  }
  return hasFailed ? EXIT.FAILED : EXIT.OK
}

function lineOf({ check, status, text, advice }: Finding, { stdout, env }: Terminal): string {
  const [label, style] = LABELS[status]
  const head = `${paint(label.padEnd(5), style, stdout, env)} ${check.padEnd(12)} ${printable(text)}\n`
  return advice === undefined ? head : `${head}${' '.repeat(19)}${printable(advice)}\n`
}

/** Examines the way to a server from the name to the protocol. Ends at the first layer that does not work. */
export async function* examine(target: DoctorTarget): AsyncGenerator<Finding> {
  const { isSecure, host, origin, token, admin } = target
  // Also while nothing else answers: it says why.
  if (admin !== undefined) yield* await checkHealth(admin)
  if (token !== undefined) yield* checkClaims(token)
  const [name, addresses] = await checkName(target)
  yield name
  if (name.status === 'fail') return
  const port = await checkPort(target, addresses)
  yield port
  if (port.status === 'fail') return
  // Others could read a token that is sent over anything else.
  let isPrivate = isLoopback(host)
  if (isSecure) {
    const tls = await checkTls(target)
    yield* tls
    if (tls.some(({ check, status }) => check === 'tls' && status === 'fail')) return
    isPrivate = tls.every(({ status }) => status !== 'fail')
  }
  const { findings, session } = await checkUpgrade(target)
  yield* findings
  if (session !== undefined) {
    if (origin !== undefined) yield await checkOrigin(target, origin)
    yield* checkTalk(target, session, isPrivate)
  }
  if (admin === undefined) yield* await checkHealth(target)
  if (isHere(addresses)) yield await checkOpenFiles(admin ?? target)
}

/** Default of `jwt.clockToleranceS`. */
const CLOCK_TOLERANCE_S = 5
const SOON_S = 60

/** Looks at the claims of a token, without verifying it: only the server can. */
function checkClaims(token: string): readonly Finding[] {
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
    return failure('token', `it was issued ${inWords(iat - nowS)} in the future (iat)`, clocks)
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
