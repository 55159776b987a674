import { closeCodeOf, ERRORS, type ErrorCode, errorOfCloseCode, WebMQError } from 'webmq-client/protocol'
import { within } from '../../base/within.js'
import { type Finding, failure, ok, skipped, warning } from './finding.js'
import type { Closure, ProbeSession } from './session.js'
import { type DoctorTarget, elapsedMs, whyOf } from './target.js'

const PING_COUNT = 5
const SLOW_MS = 300

/**
 * Talks to the server over one connection, and closes it: token, round trip, idle time.
 *
 * @param isPrivate Whether nobody else can read what is sent. A token is not sent otherwise.
 */
export async function* checkTalk(
  { token, idleMs }: DoctorTarget,
  session: ProbeSession,
  isPrivate: boolean,
): AsyncGenerator<Finding> {
  try {
    const { auth, heartbeatMs, node, version } = await session.welcome()
    yield ok('welcome', `node ${node}, version ${version}`)
    let isAdmitted = auth !== 'required'
    const identity = await checkToken(token, session, auth, isPrivate)
    isAdmitted ||= identity.status === 'ok'
    yield identity
    yield await checkRoundTrip(session)
    if (idleMs !== undefined) yield await checkIdle(session, idleMs, heartbeatMs, isAdmitted)
  } catch (error) {
    yield failure('welcome', `the server does not talk (${whyOf(error)})`, 'Look at the log of the server.')
  } finally {
    session.close()
  }
}

async function checkToken(
  token: string | undefined,
  session: ProbeSession,
  auth: 'none' | 'required' | 'done',
  isPrivate: boolean,
): Promise<Finding> {
  if (token === undefined) {
    if (auth !== 'required') return skipped('identity', 'the server wants no token')
    return warning('identity', 'the server wants a token, and none was given', 'Give one with --token to check it.')
  }
  if (auth === 'none') {
    return warning('identity', 'the server ignores tokens', 'It has no key: set --jwt-secret-file or --jwks.')
  }
  if (!isPrivate) {
    return warning('identity', 'the token was not sent, as others could read it', 'Use wss:// and a good certificate.')
  }
  try {
    const { result } = await session.authenticate(token)
    const { userId } = (result ?? {}) as { userId?: unknown }
    return ok('identity', `the server accepts the token${userId === undefined ? '' : `, user ${String(userId)}`}`)
  } catch (error) {
    if (!(error instanceof WebMQError)) throw error
    const advice = 'Compare key, issuer and audience with those of the server: webmq-server token inspect.'
    return failure('identity', `the server refuses the token: ${error.message}`, advice)
  }
}

async function checkRoundTrip(session: ProbeSession): Promise<Finding> {
  const times: number[] = []
  for (let count = 0; count < PING_COUNT; count++) times.push(await session.pingMs())
  times.sort((a, b) => a - b)
  const [min, median, max] = [times[0], times[PING_COUNT >> 1], times.at(-1)].map((ms = 0) => Math.round(ms * 10) / 10)
  const text = `${median} ms (${min} to ${max} ms, ${PING_COUNT} pings)`
  if ((median ?? 0) < SLOW_MS) return ok('round trip', text)
  return warning('round trip', text, 'Put the server nearer to its users, or look what keeps its event loop busy.')
}

/** Keeps the connection idle. Pings of the server are answered, as every client does. */
async function checkIdle(
  session: ProbeSession,
  idleMs: number,
  heartbeatMs: number,
  isAdmitted: boolean,
): Promise<Finding> {
  if (!isAdmitted) return skipped('idle', 'a connection without its token does not stay')
  const startedMs = performance.now()
  if (!(await within(session.closed, idleMs))) return ok('idle', `the connection stayed for ${idleMs / 1000} s`)
  const closure = await session.closed
  return explainCut(closure, elapsedMs(startedMs), heartbeatMs)
}

/** Who has ended an idle connection: servers send a close frame, and things between only cut. */
function explainCut({ code, reason }: Closure, afterMs: number, heartbeatMs: number): Finding {
  const after = `after ${afterMs / 1000} s of silence`
  const name: ErrorCode | undefined = errorOfCloseCode(code)
  if (name !== undefined && closeCodeOf(name) === code) {
    const text = `the server closed the connection ${after}: ${code} ${name}, ${ERRORS[name].message}`
    return failure('idle', text, `webmq-server explain ${name} says more.`)
  }
  const who =
    code === 1006 ? 'something between cut the connection' : `something between closed it with ${code} ${reason}`
  const advice =
    afterMs < heartbeatMs
      ? `Raise the idle time of the proxy or balancer above ${heartbeatMs / 1000} s, or lower --ping-interval below ${afterMs / 1000} s.`
      : 'Look at the longest connection time of the proxy or balancer.'
  return failure('idle', `${who} ${after}`, advice)
}
