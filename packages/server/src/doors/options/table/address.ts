import { choice, integer, list, text, toggle } from '../spec.js'
import { checkFileName, checkHost, checkHostOrSocket } from './checks.js'

export const ADDRESS_OPTIONS = {
  host: text({
    placeholder: 'address',
    default: '127.0.0.1',
    check: checkHostOrSocket,
    help: 'Address to bind; `0.0.0.0` or `::` binds every address, `unix:/run/webmq/webmq.sock` a Unix socket.',
    detail:
      'The default accepts connections from this machine only, so a first try exposes nothing. A Unix socket is for a proxy on this machine: it has no port, and who opens it is believed about the client, as `trustedProxies` are. [operations.md](operations.md#a-unix-socket) has more.',
  }),
  socketMode: text({
    placeholder: 'mode',
    default: '660',
    check: (value) => (/^[0-7]{3}$/.test(value) ? undefined : 'three octal digits, as 660'),
    help: 'Who may connect to the Unix socket of `host`: the mode of its file. `660` is its user and group.',
    detail: 'On Linux, writing is what counts. The user of your proxy needs it, and nobody else should have it.',
  }),
  port: integer({
    shortFlag: 'p',
    range: [0, 65_535],
    default: 8080,
    help: 'Port to bind; `0` picks a free one.',
  }),
  path: text({
    placeholder: 'path',
    default: '/ws',
    check: (value) => (/^\/[^\s?#]*$/.test(value) ? undefined : 'a path that starts with / and has no query'),
    help: 'Path of the WebSocket endpoint; upgrades to other paths get a 404.',
  }),
  adminPort: integer({
    range: [0, 65_535],
    defaultText: 'off',
    help: 'Second port for operators: `/health`, `/ready`, `/metrics`, the whole HTTP API and the admin page; `0` picks a free one.',
    detail:
      'With it, the routes of operators and the admin page are there alone. The public port then serves no `/metrics`, and only the short form of `/health` and `/ready`.',
  }),
  adminHost: text({
    placeholder: 'address',
    default: '127.0.0.1',
    check: checkHost,
    help: 'Address to bind `adminPort` to.',
    detail:
      'Everyone who can reach an address beyond loopback may read the metrics there, unless `metrics` is `off`, and try keys at the HTTP API.',
  }),
  demo: toggle({
    help: 'Serve the demo page at `/`.',
  }),
  'tls.certFile': list({
    flag: 'tls-cert',
    takesText: true,
    placeholder: 'file',
    check: checkFileName,
    help: 'PEM file with the certificate chain, to serve `wss://` and `https://` without a proxy.',
    detail:
      'With several, a client gets the one with the host name that it asks for; the first is for all others. [tls.md](tls.md) has the rules.',
  }),
  'tls.keyFile': list({
    flag: 'tls-key',
    takesText: true,
    placeholder: 'file',
    check: checkFileName,
    help: 'PEM file with the private key of the certificate; with several certificates, one for each, in the same order.',
    detail: 'Without a passphrase.',
  }),
  sse: choice({
    choices: ['on', 'off'],
    default: 'on',
    help: 'Whether event streams (SSE) are served at `ssePath`: `on` or `off`.',
    detail: 'The transports `native` and `ws` serve them, on their own port only. [sse.md](sse.md) has the events.',
  }),
  ssePath: text({
    placeholder: 'path',
    default: '/sse',
    check: (value) => (/^\/[^\s?#]*$/.test(value) ? undefined : 'a path that starts with / and has no query'),
    help: 'Path of event streams.',
  }),
  streamsPath: text({
    placeholder: 'path',
    default: '/streams',
    check: (value) =>
      /^\/[^\s?#]*[^\s?#/]$/.test(value) ? undefined : 'a path that starts with /, ends without, and has no query',
    help: 'Path below which streams have addresses for clients of Durable Streams.',
    detail: 'The key follows it, as in `/streams/build.42`. [streams.md](streams.md#durable-streams) has the rules.',
  }),
}
