import { SUBPROTOCOL } from 'webmq-client/protocol'
import { type Answer, jsonOf } from './health.js'
import { ProbeSession } from './talk.js'
import { type DoctorTarget, type Finding, failure, ok, urlWith, whyOf } from './target.js'
import { speaksTls } from './tls.js'

const FORWARD_UPGRADES =
  'Let the proxy forward WebSockets. nginx: proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade";'

/** Asks for a WebSocket as a program does: without an origin. The session is the caller's; absent after a failure. */
export async function checkUpgrade(
  target: DoctorTarget,
): Promise<{ readonly findings: readonly Finding[]; readonly session?: ProbeSession }> {
  const accepted = ok('upgrade', 'the server accepts the WebSocket')
  try {
    const opened = await ProbeSession.open(target)
    if (opened instanceof ProbeSession) return { findings: [accepted, ok('subprotocol', SUBPROTOCOL)], session: opened }
    if (opened.status !== 101) return { findings: [await explainRefusal(target, opened)] }
    if (opened.defect?.includes('subprotocol') !== true) {
      const advice = 'Something else than a WebSocket server answers at this path: check host, port and proxy.'
      return { findings: [failure('upgrade', `the answer is 101, and none of WebSocket: ${opened.defect}`, advice)] }
    }
    const chosen = opened.headers['sec-websocket-protocol'] ?? 'none'
    const text = `the server chooses ${chosen} instead of ${SUBPROTOCOL}`
    const advice =
      'Another WebSocket server answers, or a proxy removes Sec-WebSocket-Protocol: check host, path and proxy.'
    return { findings: [accepted, failure('subprotocol', text, advice)] }
  } catch (error) {
    return { findings: [await explainSilence(target, error)] }
  }
}

export async function checkOrigin(target: DoctorTarget, origin: string): Promise<Finding> {
  try {
    const opened = await ProbeSession.open(target, origin)
    if (opened instanceof ProbeSession) {
      opened.close()
      return ok('origin', `pages of ${origin} may connect`)
    }
    if (jsonOf(opened).code === 'E_ORIGIN_FORBIDDEN') {
      const advice = `Start the server with --origin ${origin}, or serve the page from the server's own host.`
      return failure('origin', `pages of ${origin} may not connect`, advice)
    }
    return { ...(await explainRefusal(target, opened)), check: 'origin' }
  } catch (error) {
    return failure('origin', `no answer to a page of ${origin} (${whyOf(error)})`, 'Look at the proxy in front.')
  }
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
  const text = `no answer to the upgrade request (${whyOf(error)})`
  return failure('upgrade', text, 'Check that a WebMQ server listens on this port, and the proxy in front.')
}

function tlsWanted(target: DoctorTarget): Finding {
  const text = `port ${target.port} speaks TLS, and the URL asks without`
  return failure('upgrade', text, `Use ${urlWith(target, { scheme: 'wss' })}.`)
}
