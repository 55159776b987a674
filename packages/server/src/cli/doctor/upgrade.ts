import { createHash, randomBytes } from 'node:crypto'
import { SUBPROTOCOL } from 'webmq-client/protocol'
import { codeOf } from './address.js'
import { type Finding, failure, ok } from './finding.js'
import { type Answer, ask, jsonOf } from './http.js'
import { type DoctorTarget, urlWith } from './target.js'
import { speaksTls } from './tls.js'

/** RFC 6455 §1.3. */
const ACCEPT_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

const FORWARD_UPGRADES =
  'Let the proxy forward WebSockets. nginx: proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade";'

/** Asks for a WebSocket as a program does: without an origin. */
export async function checkUpgrade(target: DoctorTarget): Promise<readonly Finding[]> {
  try {
    const { answer, isAccepted } = await upgrade(target)
    if (answer.status !== 101) return [await explainRefusal(target, answer)]
    if (!isAccepted) {
      const advice = 'Something else than a WebSocket server answers at this path: check host, port and proxy.'
      return [failure('upgrade', 'the answer is 101, with a wrong Sec-WebSocket-Accept', advice)]
    }
    return [ok('upgrade', 'the server accepts the WebSocket'), subprotocolOf(answer)]
  } catch (error) {
    return [await explainSilence(target, error)]
  }
}

/** Asks for a WebSocket as a page of this origin does. */
export async function checkOrigin(target: DoctorTarget, origin: string): Promise<Finding> {
  try {
    const { answer } = await upgrade(target, { origin })
    if (answer.status === 101) return ok('origin', `pages of ${origin} may connect`)
    if (jsonOf(answer).code === 'E_ORIGIN_FORBIDDEN') {
      const advice = `Start the server with --origin ${origin}, or serve the page from the server's own host.`
      return failure('origin', `pages of ${origin} may not connect`, advice)
    }
    return { ...(await explainRefusal(target, answer)), check: 'origin' }
  } catch (error) {
    return failure('origin', `no answer to a page of ${origin} (${codeOf(error)})`, 'Look at the proxy in front.')
  }
}

async function upgrade(
  target: DoctorTarget,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly answer: Answer; readonly isAccepted: boolean }> {
  const key = randomBytes(16).toString('base64')
  const { pathname, search } = target.url
  const answer = await ask(target, pathname + search, {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': key,
    'sec-websocket-protocol': SUBPROTOCOL,
    ...headers,
  })
  const expected = createHash('sha1').update(`${key}${ACCEPT_SUFFIX}`).digest('base64')
  return { answer, isAccepted: answer.headers['sec-websocket-accept'] === expected }
}

function subprotocolOf({ headers }: Answer): Finding {
  const chosen = headers['sec-websocket-protocol']
  if (chosen === SUBPROTOCOL) return ok('subprotocol', SUBPROTOCOL)
  return failure(
    'subprotocol',
    `the server chooses ${chosen ?? 'none'} instead of ${SUBPROTOCOL}`,
    'Another WebSocket server answers, or a proxy removes Sec-WebSocket-Protocol: check host, path and proxy.',
  )
}

/** A refusal by the server has a code, and one by anything between has none. */
async function explainRefusal(target: DoctorTarget, answer: Answer): Promise<Finding> {
  const { code, message } = jsonOf(answer)
  const { status } = answer
  if (typeof code !== 'string' || !/^E_[A-Z_]+$/.test(code)) return await explainStranger(target, answer)
  const text = `the server answers ${status} ${code}: ${String(message)}`
  if (code === 'E_PATH_NOT_FOUND') {
    const [, path] = /the endpoint is (\/\S*)/.exec(String(message)) ?? []
    const other = path === undefined ? 'Use the path of the server (--path).' : `Use ${urlWith(target, { path })}.`
    return failure('upgrade', text, other)
  }
  if (code === 'E_HANDSHAKE_INVALID') {
    return failure('upgrade', `${text}: something between removes the Upgrade header`, FORWARD_UPGRADES)
  }
  return failure('upgrade', text, `webmq-server explain ${code} says more.`)
}

async function explainStranger(target: DoctorTarget, answer: Answer): Promise<Finding> {
  const { status, headers } = answer
  const who = headers.server ?? headers.via
  const text = `the answer is ${status}${who === undefined ? '' : ` by ${who}`}, and not one of WebMQ`
  if (!target.isSecure && (await speaksTls(target))) return tlsWanted(target)
  if (status >= 300 && status < 400) {
    return failure(
      'upgrade',
      `${text}: a redirect to ${headers.location}`,
      'Use that URL; clients follow no redirects.',
    )
  }
  if (status === 401 || status === 407) return failure('upgrade', text, 'The proxy in front wants a login of its own.')
  if (status >= 502 && status <= 504) {
    return failure('upgrade', text, 'The proxy in front does not reach the server: check its backend and /ready.')
  }
  return failure('upgrade', text, `Check host, port and path. ${FORWARD_UPGRADES}`)
}

async function explainSilence(target: DoctorTarget, error: unknown): Promise<Finding> {
  if (!target.isSecure && (await speaksTls(target))) return tlsWanted(target)
  const text = `no answer to the upgrade request (${codeOf(error)})`
  return failure('upgrade', text, 'Check that a WebMQ server listens on this port, and the proxy in front.')
}

function tlsWanted(target: DoctorTarget): Finding {
  const text = `port ${target.port} speaks TLS, and the URL asks without`
  return failure('upgrade', text, `Use ${urlWith(target, { scheme: 'wss' })}.`)
}
