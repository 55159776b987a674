import { once } from 'node:events'
import { checkServerIdentity, connect, type DetailedPeerCertificate, type TLSSocket } from 'node:tls'
import { inWords } from '../terminal.js'
import {
  type DoctorTarget,
  elapsedMs,
  type Finding,
  failure,
  inTime,
  ok,
  tlsOptionsOf,
  urlWith,
  warning,
  whyOf,
} from './target.js'

/** Certificates are renewed about 30 days before they expire; one with less has not been. */
const EXPIRY_WARNING_S = 14 * 86_400

/** Examines TLS: version, names, expiry and chain; one failure if nothing answers in TLS. Goes on with a certificate that clients refuse. */
export async function checkTls(target: DoctorTarget): Promise<readonly Finding[]> {
  const startedMs = performance.now()
  let socket: TLSSocket
  try {
    socket = await shakeHands(target)
  } catch (error) {
    const advice = `If the server has no certificate, use ${urlWith(target, { scheme: 'ws' })}; otherwise look at its log.`
    return [failure('tls', `port ${target.port} does not speak TLS (${whyOf(error)})`, advice)]
  }
  const certificate = socket.getPeerCertificate(true)
  const untrusted = authorizationError(socket)
  const version = ok('tls', `${socket.getProtocol() ?? 'TLS'}, ${socket.getCipher().name} (${elapsedMs(startedMs)} ms)`)
  socket.destroy()
  return [version, checkNames(target, certificate), checkExpiry(certificate), checkChain(untrusted, certificate)]
}

/** Whether a port answers in TLS; for a URL that says otherwise. */
export async function speaksTls(target: DoctorTarget): Promise<boolean> {
  return await shakeHands(target).then(
    (socket) => {
      socket.destroy()
      return true
    },
    () => false,
  )
}

async function shakeHands(target: DoctorTarget): Promise<TLSSocket> {
  const { host, port, timeoutMs } = target
  const socket = connect({ host, port, ALPNProtocols: ['http/1.1'], ...tlsOptionsOf(target) })
  const ended = once(socket, 'end').then(() => {
    throw new Error('the server closes the connection')
  })
  try {
    await inTime(Promise.race([once(socket, 'secureConnect'), ended]), timeoutMs)
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    ended.catch(() => undefined)
    socket.on('error', () => undefined)
  }
}

/** The declared type is `Error`; Node sets the code as a text. */
function authorizationError({ authorizationError }: TLSSocket): string | undefined {
  const error: unknown = authorizationError
  return error === null || error === undefined ? undefined : whyOf(error)
}

function checkNames({ host }: DoctorTarget, certificate: DetailedPeerCertificate): Finding {
  const names = certificate.subjectaltname ?? 'no names'
  if (checkServerIdentity(host, certificate) === undefined) return ok('names', `the certificate is for ${names}`)
  const advice = 'Use a name of the certificate in the URL, or get one for this name.'
  return failure('names', `the certificate is not for ${host}, but for ${names}`, advice)
}

function checkExpiry({ valid_from: from, valid_to: to }: DetailedPeerCertificate): Finding {
  const leftS = (Date.parse(to) - Date.now()) / 1000
  const untilS = (Date.parse(from) - Date.now()) / 1000
  const renew = 'Renew it (certbot renew), and look why that did not happen; the server reads new files by itself.'
  if (leftS <= 0) return failure('expiry', `the certificate expired ${inWords(-leftS)} ago, on ${to}`, renew)
  if (untilS > 0) {
    return failure('expiry', `the certificate is valid only from ${from}`, 'Check the clocks of both machines.')
  }
  const text = `the certificate expires in ${inWords(leftS)}, on ${to}`
  return leftS < EXPIRY_WARNING_S ? warning('expiry', text, renew) : ok('expiry', text)
}

/** Codes of OpenSSL about the chain. Names and dates have findings of their own. */
const CHAIN_ADVICE: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'It signs itself: get one from an authority, or trust it with --ca.',
  SELF_SIGNED_CERT_IN_CHAIN: 'Its authority is not known here: clients need it; try with --ca.',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'Serve the full chain (fullchain.pem); a private authority needs --ca here.',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'Serve the full chain (fullchain.pem); a private authority needs --ca here.',
}

function checkChain(error: string | undefined, certificate: DetailedPeerCertificate): Finding {
  const advice = error === undefined ? undefined : CHAIN_ADVICE[error]
  const isElsewhere = error === 'CERT_HAS_EXPIRED' || error === 'CERT_NOT_YET_VALID' || error?.startsWith('ERR_TLS_')
  if (error === undefined || (advice === undefined && isElsewhere === true)) {
    return ok(
      'chain',
      `an authority that is trusted here has signed it: ${certificate.issuer?.O ?? certificate.issuer?.CN}`,
    )
  }
  return failure(
    'chain',
    `the certificate is not trusted (${error})`,
    advice ?? 'openssl s_client -showcerts tells more.',
  )
}
