import { createSecretKey, randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import { ask, jsonOf } from '../health.js'
import { ProbeSession } from '../talk.js'
import { type DoctorTarget, type Finding, failure, ok, parseServerUrl, skipped, warning, whyOf } from '../target.js'
import type { ProductionFolder } from './folder.js'

/** A key that nobody uses. */
const KEY = 'webmq-doctor'
/** An origin that no installation allows: the name can never exist (RFC 2606). */
const STRANGER = 'https://webmq-doctor.invalid'
const TTL_S = 300

/** What everybody on the network can see and do. */
export async function checkOutside(
  target: DoctorTarget,
  folder: ProductionFolder | undefined,
): Promise<readonly Finding[]> {
  const findings = await Promise.all([
    checkPublic(target),
    checkHeaders(target),
    checkStranger(target),
    checkAnonymous(target),
    checkPlain(target),
    ...(folder === undefined ? [] : [checkTokens(target, folder)]),
  ])
  return findings.flat()
}

/** Paths that are for operators. The public port of a node has none of them when it has an admin port. */
const OPERATORS = ['/metrics', '/admin', '/api/info', '/api/connections', '/api/config']

async function checkPublic(target: DoctorTarget): Promise<readonly Finding[]> {
  const open: string[] = []
  for (const path of OPERATORS) if ((await ask(target, path)).status === 200) open.push(path)
  if (open.length === 0) return [ok('operators', 'metrics and routes of operators are not public')]
  return [failure('operators', `everybody can read ${open.join(', ')}`, 'Set adminPort, and let the proxy answer 404.')]
}

async function checkHeaders(target: DoctorTarget): Promise<readonly Finding[]> {
  if (!target.isSecure) return [failure('headers', 'the URL is not wss://', 'Put a proxy with TLS in front.')]
  const { headers } = await ask(target, '/health')
  if (headers['strict-transport-security'] !== undefined) return [ok('headers', 'browsers come by TLS alone')]
  const advice = 'Let the proxy send Strict-Transport-Security: max-age=31536000.'
  return [warning('headers', 'a browser may come without TLS the next time', advice)]
}

async function checkStranger(target: DoctorTarget): Promise<readonly Finding[]> {
  const opened = await ProbeSession.open(target, STRANGER)
  if (!(opened instanceof ProbeSession)) {
    if (jsonOf(opened).code === 'E_ORIGIN_FORBIDDEN') return [ok('stranger', 'pages of other sites may not connect')]
    return [skipped('stranger', `not known: the answer was ${opened.status}`)]
  }
  opened.close()
  return [failure('stranger', 'any page may connect in the name of its user', 'Set origins to those of your pages.')]
}

const historyPath = `/api/history?key=${KEY}`

async function checkAnonymous(target: DoctorTarget): Promise<readonly Finding[]> {
  const { status } = await ask(target, historyPath)
  if (status === 401) return [ok('no token', 'who has no token or API key is refused')]
  return [
    failure(
      'no token',
      `a request without a token gets ${status} instead of 401`,
      'Set a key for tokens (jwt.secret, …).',
    ),
  ]
}

async function checkPlain(target: DoctorTarget): Promise<readonly Finding[]> {
  if (!target.isSecure || target.port !== 443) return []
  const plain = { ...target, ...parseServerUrl(`ws://${target.host}/`) }
  try {
    const { status } = await ask(plain, '/health')
    if (status >= 300 && status < 400) return [ok('plain http', 'it leads to TLS')]
    return [failure('plain http', `port 80 answers ${status} without TLS`, 'Let port 80 redirect, or close it.')]
  } catch (error) {
    return [ok('plain http', `port 80 is closed (${whyOf(error)})`)]
  }
}

/** Presents tokens that must be refused, and one that must not. It needs the secret of the folder. */
async function checkTokens(target: DoctorTarget, folder: ProductionFolder): Promise<readonly Finding[]> {
  const secret = folder.secret('jwt-secret')
  if (secret === '' || !target.isSecure)
    return [skipped('token', 'no token is sent without TLS and secrets/jwt-secret')]
  const nowS = Math.floor(Date.now() / 1_000)
  const good = { aud: folder.options?.jwt?.audience ?? folder.host, iat: nowS, exp: nowS + TTL_S }
  const answers = await Promise.all(
    [
      good,
      { ...good, exp: undefined },
      { ...good, aud: 'elsewhere' },
      { ...good, exp: nowS - TTL_S, iat: nowS - 2 * TTL_S },
    ].map(async (claims) => await statusWith(target, await signed(claims, secret))),
  )
  const [accepted = 0, ...refused] = answers
  const problems = ['without exp', 'for another audience', 'that has expired'].flatMap((what, index) =>
    refused[index] === 401
      ? []
      : [
          failure(
            'token',
            `a token ${what} gets ${refused[index]} instead of 401`,
            'Look at jwt.requireExp, jwt.audience and the clocks.',
          ),
        ],
  )
  if (accepted !== 200) {
    const advice =
      'The nodes have another secret than secrets/jwt-secret, or other options than webmq.json: restart them.'
    problems.push(failure('token', `a good token gets ${accepted} instead of 200`, advice))
  }
  return problems.length > 0
    ? problems
    : [ok('token', 'a good one is taken; without exp, for others or expired ones are not')]
}

async function statusWith(target: DoctorTarget, token: string): Promise<number> {
  return (await ask(target, historyPath, { authorization: `Bearer ${token}` })).status
}

/** Signs claims with the secret of an installation. It may read and write keys of the doctor alone. */
export async function signed(claims: Readonly<Record<string, unknown>>, secret: string): Promise<string> {
  const webmq = { grants: [{ keys: [`${KEY}.#`, KEY], allow: ['listen', 'publish'] }] }
  const payload = JSON.parse(JSON.stringify({ sub: KEY, jti: randomUUID(), webmq, ...claims }))
  return await new SignJWT(payload).setProtectedHeader({ alg: 'HS256' }).sign(createSecretKey(Buffer.from(secret)))
}
