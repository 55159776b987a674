import { ERRORS, type ErrorSpec } from 'webmq-client/protocol'

const FEWER = "ask for less, or raise the server's limit"
const TAKE_TOKEN = 'give one that the server accepts with --token (`webmq-server token create` makes one)'

/** What to do about a code, for somebody who measures. */
const WAYS: Readonly<Record<string, string>> = {
  E_TOKEN_INVALID: TAKE_TOKEN,
  E_TOKEN_EXPIRED: TAKE_TOKEN,
  E_UNAUTHENTICATED: TAKE_TOKEN,
  E_AUTH_TIMEOUT: TAKE_TOKEN,
  E_PATH_NOT_FOUND: 'the WebSocket is at another path, by default /ws: put it into --url',
  E_INSECURE: 'the server asks for no token, so it takes only clients of its own machine: run the bench there',
  E_CONNECTION_LIMIT: FEWER,
  E_LISTEN_LIMIT: FEWER,
  E_RATE_LIMIT: FEWER,
  E_PAYLOAD_TOO_LARGE: 'take a smaller --payload',
  E_MESSAGE_TOO_LARGE: 'take a smaller --payload',
  E_DRAIN: 'the server is stopping: wait for the next one',
  E_SLOW_CONSUMER: 'the bench or the network was too slow for this load: ask for less',
  E_BROKER_UNAVAILABLE: "the server has lost its broker: look at the server's log",
}

/** HTTP statuses of something that is no WebMQ server. */
const STATUSES: Readonly<Record<number, string>> = {
  200: 'there is a web page, not a WebSocket: is the path right (by default /ws)?',
  301: 'it redirects: put the other address into --url',
  302: 'it redirects: put the other address into --url',
  307: 'it redirects: put the other address into --url',
  308: 'it redirects: put the other address into --url',
  400: 'does a proxy in front of it forward the upgrade?',
  401: 'something in front of the server asks for credentials',
  403: 'something in front of the server refuses',
  404: 'is the path right (by default /ws)?',
  426: 'does a proxy in front of it forward the upgrade?',
  429: 'something in front of the server limits the rate: ask for less',
  502: 'a proxy in front of it does not reach the server',
  503: 'the server or a proxy in front of it takes no more connections now',
  504: 'a proxy in front of it does not reach the server',
}

/** Errors of connecting, by Node's codes and by the load generator's words. */
const FAULTS: readonly (readonly [RegExp, string])[] = [
  [/ECONNREFUSED/, 'nothing listens there: check host and port'],
  [/ENOTFOUND|EAI_AGAIN/, 'the name is not known: check the host'],
  [/timeout|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH/i, 'no answer: is there a firewall on the way?'],
  [/ECONNRESET|ended|socket hang up/, 'the connection was cut: ws:// to a port of TLS, or a proxy in front'],
  [
    /SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|unknown issuer|self-signed/i,
    'the certificate is of an authority that is not known here: name it with --ca, or accept everything with --insecure',
  ],
  [/ALTNAME|another name/, 'the certificate is for another name: check the host, or say --insecure'],
  [/CERT_HAS_EXPIRED|has expired/, 'the certificate has expired: renew it, or say --insecure'],
  [/WRONG_VERSION_NUMBER|EPROTO|speaks no TLS/, 'the server speaks no TLS there: ws:// instead of wss://?'],
  [/no source port|descriptor limit/, 'this machine has no more sockets: take fewer connections'],
]

/** A sentence for a code of WebMQ: the code, its meaning, and what to do. */
export function refusalText(code: string, keyPrefix: string): string {
  const spec = (ERRORS as Readonly<Record<string, ErrorSpec>>)[code]
  const way =
    code === 'E_FORBIDDEN'
      ? `the token must grant listen and publish for ${keyPrefix.replace(/\.[^.]*$/, '')}.#, or take keys that it grants with --key-prefix`
      : WAYS[code]
  return [code, ...(spec === undefined ? [] : [spec.message])].join(': ') + (way === undefined ? '' : `; ${way}`)
}

/** Code of WebMQ of a close code; `undefined`: it has none. */
export function codeOfClose(closeCode: number): string | undefined {
  return Object.entries<ErrorSpec>(ERRORS).find(([, spec]) => spec.closeCode === closeCode)?.[0]
}

/** A sentence for an HTTP status without a code of WebMQ. */
export function statusText(status: number): string {
  const way = STATUSES[status]
  return `HTTP ${status}${way === undefined ? '' : `; ${way}`}`
}

/** A sentence for a failure to connect, in the words of Node or of the load generator. */
export function faultText(fault: string, keyPrefix: string): string {
  const [, closeCode] = /^closed (\d+)/.exec(fault) ?? []
  const code = closeCode === undefined ? undefined : codeOfClose(Number(closeCode))
  if (code !== undefined) return refusalText(code, keyPrefix)
  const [, status] = /^http (\d+)/.exec(fault) ?? []
  if (status !== undefined) return statusText(Number(status))
  const way = FAULTS.find(([pattern]) => pattern.test(fault))?.[1]
  return way === undefined ? fault : `${fault}; ${way}`
}
