import { availableParallelism } from 'node:os'
import { describeAllowedAlgorithms, isAlgorithm } from './identity/algorithms.js'
import { LOG_LEVELS } from './logger.js'
import type { OptionSpec } from './option-spec.js'
import { describeAllowedOrigin, isOriginPattern } from './origin.js'

/** Node fires a timer at once when its delay does not fit into 31 bits, which is a little more than 24 days. */
const MAX_TIMER_MS = 24 * 86_400_000
const MIB = 1024 ** 2
const GIB = 1024 ** 3

const time = { section: 'Time limits', type: 'integer', unit: 'ms', max: MAX_TIMER_MS } as const
const limit = { section: 'Limits', type: 'integer' } as const
const token = { section: 'Tokens', type: 'text' } as const

/**
 * Every option of the server, once. `--help`, the flags, the environment, the config file, validation and
 * `docs/configuration.md` all come from this table.
 */
export const OPTIONS = [
  {
    name: 'host',
    section: 'Address',
    flag: 'host',
    type: 'text',
    placeholder: 'address',
    default: '127.0.0.1',
    check: (value) => (/^[^\s/]+$/.test(value) ? undefined : 'an IP address or a host name'),
    help: 'Address to bind; `0.0.0.0` or `::` takes every address.',
    detail: 'The default is reached from this machine only, so that trying WebMQ out exposes nothing.',
  },
  {
    name: 'port',
    section: 'Address',
    flag: 'port',
    shortFlag: 'p',
    type: 'integer',
    min: 0,
    max: 65_535,
    default: 8080,
    help: 'Port to bind; `0` takes a free one.',
    detail: 'The variable `PORT` is honoured too, after `WEBMQ_PORT`.',
  },
  {
    name: 'path',
    section: 'Address',
    flag: 'path',
    type: 'text',
    placeholder: 'path',
    default: '/ws',
    check: (value) => (/^\/[^\s?#]*$/.test(value) ? undefined : 'a path that starts with / and has no query'),
    help: 'Path of the WebSocket endpoint; an upgrade to another path is answered with 404.',
  },
  {
    name: 'demo',
    section: 'Address',
    flag: 'demo',
    type: 'switch',
    default: false,
    help: 'Serve the demo page at `/`.',
    detail: 'Off, so that a server in production shows no page that it was not asked for.',
  },
  {
    name: 'tls.certFile',
    section: 'Address',
    flag: 'tls-cert',
    type: 'text',
    placeholder: 'file',
    help: 'PEM file with the certificate chain, to serve `wss://` without a proxy; needs the `uws` transport.',
  },
  {
    name: 'tls.keyFile',
    section: 'Address',
    flag: 'tls-key',
    type: 'text',
    placeholder: 'file',
    help: 'PEM file with the private key of the certificate.',
  },
  {
    name: 'transport',
    section: 'Engine',
    flag: 'transport',
    type: 'choice',
    choices: ['native', 'uws'],
    default: 'native',
    help: 'Who owns the sockets: `native`, the Rust engine, or `uws`, uWebSockets.js.',
    detail:
      '`native` writes from several threads; `uws` has TLS in process, and runs where the engine does not. uWebSockets.js is not part of the package: the error that comes without it says how to install it.',
  },
  {
    name: 'threads',
    section: 'Engine',
    flag: 'threads',
    type: 'integer',
    min: 1,
    max: 256,
    default: () => Math.max(1, availableParallelism() - 1),
    defaultText: 'cores - 1, at least 1',
    help: 'I/O threads of the native transport.',
    detail: 'One core is left to JavaScript: with a thread on every core, routing waits behind writing.',
  },
  {
    name: 'flushIntervalMs',
    section: 'Engine',
    flag: 'flush-interval',
    type: 'integer',
    unit: 'ms',
    min: 0,
    max: 1_000,
    default: 10,
    help: 'Time for which a busy I/O thread may hold publications back so that several share one write; `0` turns it off.',
    detail:
      'A thread that is not busy sends everything at once, whatever this says. Without it, a thousand messages a second to a thousand clients keep a core busy; with 10 ms, less than half of one. For the native transport.',
  },
  {
    name: 'broker',
    section: 'Engine',
    flag: 'broker',
    type: 'choice',
    choices: ['memory'],
    default: 'memory',
    help: 'What carries messages between nodes; `memory` is embedded.',
    detail: '`memory` needs nothing installed, serves one node, and loses its history at exit.',
  },
  {
    name: 'compression',
    section: 'Engine',
    flag: 'compression',
    type: 'switch',
    default: false,
    help: 'Compress messages for clients that offer permessage-deflate (RFC 7692), as all browsers do.',
    detail:
      'Off, because small messages hardly become smaller and every client pays for decompressing. A message that goes to many is compressed once per process (`uws`: once per receiver). Messages are compressed one by one, without context takeover: no connection needs memory for it, and no message tells anything about another. One that holds a secret beside text of a stranger tells its size: leave it off then. A client that wants a `server_max_window_bits` below 15 is served without compression.',
  },
  {
    name: 'compressionThresholdBytes',
    section: 'Engine',
    flag: 'compression-threshold',
    type: 'integer',
    unit: 'bytes',
    min: 0,
    max: 64 * MIB,
    default: 1024,
    help: 'Smallest message that is compressed, its header included.',
    detail: 'Keeps the processor from being spent where a packet is not filled anyway.',
  },
  {
    ...limit,
    name: 'maxPayloadBytes',
    flag: 'max-payload',
    unit: 'bytes',
    min: 1,
    max: 64 * MIB,
    default: 256 * 1024,
    help: 'Largest payload of one message; a larger one is refused with `E_PAYLOAD_TOO_LARGE`.',
    detail:
      'Far larger ones close the connection with 1009. Without the limit one publisher fills the memory of everyone.',
  },
  {
    ...limit,
    name: 'maxOutboxBytes',
    flag: 'max-outbox',
    unit: 'bytes',
    min: 8192,
    max: GIB,
    default: MIB,
    help: 'Bytes that may wait for one connection; a client that reads too slowly is closed with 4008.',
    detail:
      'Without the limit a client that reads slower than it is sent to grows the memory of the server until it dies, and everyone with it. At least `maxPayloadBytes` + 4,096.',
  },
  {
    ...limit,
    name: 'maxHeaderBytes',
    flag: 'max-header',
    unit: 'bytes',
    min: 1024,
    max: MIB,
    default: 8192,
    help: 'Largest request head; a larger one is answered with 431.',
    detail: 'A request that never ends holds no more memory than this.',
  },
  {
    ...limit,
    name: 'maxConnections',
    flag: 'max-connections',
    min: 0,
    max: 10_000_000,
    default: 0,
    help: 'Connections held at once; one more is answered with 503.',
    detail:
      '`0` takes as many as the descriptor limit allows; a limit below that keeps the node able to answer health checks.',
  },
  {
    ...limit,
    name: 'maxListensPerConnection',
    flag: 'max-listens',
    min: 0,
    max: 1_000_000,
    default: 128,
    help: 'Patterns that one connection may listen with; one more is refused with `E_LISTEN_LIMIT`.',
    detail: 'Keeps one client from filling the router.',
  },
  {
    ...time,
    name: 'handshakeTimeoutMs',
    flag: 'handshake-timeout',
    min: 10,
    default: 5000,
    help: 'Time from accept to the end of the WebSocket handshake.',
    detail: 'Frees the sockets of peers that connect and say nothing.',
  },
  {
    ...time,
    name: 'authTimeoutMs',
    flag: 'auth-timeout',
    min: 10,
    default: 10_000,
    help: 'Time that a client has to send its token when one is required; then it is closed with 4002.',
    detail: 'Keeps strangers from holding connections.',
  },
  {
    ...time,
    name: 'pingIntervalMs',
    flag: 'ping-interval',
    min: 10,
    default: 25_000,
    help: 'Silence after which a client is pinged.',
    detail:
      'The client is told the same figure as its heartbeat. Keep it below the 60 s after which most proxies cut an idle connection.',
  },
  {
    ...time,
    name: 'pingTimeoutMs',
    flag: 'ping-timeout',
    min: 10,
    default: 10_000,
    help: 'Silence after the ping that drops the connection, with 4003.',
    detail: 'Finds the half-open connections that a lost network leaves behind.',
  },
  {
    ...time,
    name: 'closeTimeoutMs',
    flag: 'close-timeout',
    min: 10,
    default: 5000,
    help: 'Time that a client has to answer a close frame before its socket is destroyed.',
  },
  {
    ...time,
    name: 'drainTimeoutMs',
    flag: 'drain-timeout',
    min: 0,
    default: 25_000,
    help: 'Time over which connections are closed (4001, reconnect) when the server stops.',
    detail: 'Spread, so that the other nodes get no stampede; below the 30 s that Kubernetes waits before it kills.',
  },
  {
    name: 'historyMaxMessages',
    section: 'History',
    flag: 'history-max-messages',
    type: 'integer',
    min: 0,
    max: 100_000_000,
    default: 10_000,
    help: 'Messages that the memory broker keeps for replay after a reconnect; the oldest go first.',
    detail: '`0` keeps none: every reconnect is then a gap.',
  },
  {
    name: 'historyMaxBytes',
    section: 'History',
    flag: 'history-max-bytes',
    type: 'integer',
    unit: 'bytes',
    min: 0,
    max: 64 * GIB,
    default: 16 * MIB,
    help: 'Bytes that the memory broker keeps for replay, whichever limit is met first.',
  },
  {
    name: 'dedupeWindowMs',
    section: 'History',
    flag: 'dedupe-window',
    type: 'integer',
    unit: 'ms',
    min: 0,
    max: MAX_TIMER_MS,
    default: 120_000,
    help: 'Time for which the ids of messages are remembered, to find duplicates; `0` turns it off.',
    detail:
      'A publish whose answer was lost is sent again after the reconnect; without the window it would be delivered twice.',
  },
  {
    name: 'dedupeMaxIds',
    section: 'History',
    flag: 'dedupe-max-ids',
    type: 'integer',
    min: 0,
    max: 10_000_000,
    default: 100_000,
    help: 'Ids remembered at most within that time; the oldest go first.',
  },
  {
    name: 'origins',
    section: 'Security',
    flag: 'origin',
    type: 'list',
    placeholder: 'origin',
    defaultText: 'same origin',
    check: (value) => (isOriginPattern(value) ? undefined : describeAllowedOrigin()),
    help: 'Pages of this origin may connect too: `https://app.example.com`, `https://*.example.com`, or `*` for all.',
    detail:
      'Pages of the server itself always may (without tokens only under the names of this machine, such as `localhost`: any page can give its own name the address of this machine), and so may everything that is no browser page (it sends no `Origin`). `https://*.example.com` stands for one or more labels before `example.com`, not for `example.com` itself; `http://localhost:*` for any port; `null` for sandboxed frames and files. Without the check any page that a user visits could speak in the name of that user.',
  },
  {
    name: 'insecure',
    section: 'Security',
    flag: 'insecure',
    type: 'switch',
    default: false,
    help: 'Allow anonymous access beyond this machine.',
    detail:
      'Everyone who reaches the address may then listen and publish anything. Also allows a key set over plain `http://`, where whoever is on the way could put in keys of their own.',
  },
  {
    ...token,
    name: 'jwt.secret',
    flag: 'jwt-secret',
    placeholder: 'secret',
    isSecret: true,
    fromFile: 'file-flag',
    check: (value) => {
      if (value === '') return 'a text that is not empty'
      return value.includes('-----BEGIN') ? 'a shared secret; a PEM key belongs into jwt.publicKey' : undefined
    },
    help: 'Shared secret that signs tokens (HS256, HS384, HS512); use 32 bytes or more.',
    detail:
      'With a key, a connection may do nothing until it has shown a valid token. Prefer the file: flags are visible to every user of the machine. `openssl rand -base64 32` makes one; a short secret can be found by trying, by everyone who holds a token.',
  },
  {
    ...token,
    name: 'jwt.publicKey',
    flag: 'jwt-public-key',
    placeholder: 'pem|file',
    fromFile: 'pem',
    help: 'Public key whose private half signs tokens: RSA, EC or Ed25519.',
    detail: 'The server then cannot make tokens, so a break-in here gives none away.',
  },
  {
    ...token,
    name: 'jwt.jwksUrl',
    flag: 'jwks',
    placeholder: 'url',
    check: (value) => (isHttpUrl(value) ? undefined : 'an http:// or https:// address'),
    help: 'Address of a JSON Web Key Set with the keys that sign tokens.',
    detail:
      'Read again every 10 minutes and once when a token names an unknown key, so that keys can rotate; the last good set goes on when the address does not answer.',
  },
  {
    ...token,
    name: 'jwt.issuer',
    flag: 'issuer',
    placeholder: 'iss',
    check: notEmpty,
    help: 'Refuse tokens whose `iss` is another.',
    detail: 'Needed when the key also signs tokens for others.',
  },
  {
    ...token,
    name: 'jwt.audience',
    flag: 'audience',
    placeholder: 'aud',
    check: notEmpty,
    help: 'Refuse tokens whose `aud` does not hold this.',
    detail: 'Keeps a token that was made for another service from working here.',
  },
  {
    name: 'jwt.clockToleranceS',
    section: 'Tokens',
    flag: 'clock-tolerance',
    type: 'integer',
    unit: 's',
    min: 0,
    max: 300,
    default: 5,
    help: 'How far the clocks of this machine and of the issuer may differ.',
    detail: 'Applies to `exp` and `nbf`; without it a token that was made this second may lie in the future.',
  },
  {
    name: 'jwt.algorithms',
    section: 'Tokens',
    flag: 'jwt-algorithm',
    type: 'list',
    placeholder: 'alg',
    defaultText: 'all that fit the key',
    check: (value) => (isAlgorithm(value) ? undefined : describeAllowedAlgorithms()),
    help: 'Accept this signature algorithm only.',
    detail: 'Never more than the type of the key allows: a public key does not verify HS tokens.',
  },
  {
    name: 'logLevel',
    section: 'Logging',
    flag: 'log-level',
    type: 'choice',
    choices: LOG_LEVELS,
    default: 'info',
    help: 'Least serious line that is logged, to standard error.',
  },
  {
    name: 'logFormat',
    section: 'Logging',
    flag: 'log-format',
    type: 'choice',
    choices: ['auto', 'pretty', 'json'],
    default: 'auto',
    help: 'How lines look: `auto` is `pretty` on a terminal, else one JSON object per line.',
  },
] as const satisfies readonly OptionSpec[]

/** Name of an option, `jwt.secret` for nested ones. */
export type OptionName = (typeof OPTIONS)[number]['name']

function notEmpty(value: string): string | undefined {
  return value === '' ? 'a text that is not empty' : undefined
}

function isHttpUrl(value: string): boolean {
  return URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)
}
