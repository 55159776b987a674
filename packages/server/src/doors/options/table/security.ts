import { networkDefect } from '../../../kernel/base/networks.js'
import { describeAllowedOrigin, isOriginPattern } from '../../../kernel/identity/origin.js'
import { list, text, toggle } from '../spec.js'
import { longEnough } from './checks.js'

export const SECURITY_OPTIONS = {
  tokenCookie: text({
    placeholder: 'name',
    check: (value) => (/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(value) ? undefined : 'the name of a cookie'),
    help: 'Cookie that holds the token, if a request has no other; default none.',
    detail:
      'For `EventSource`, which cannot set headers. Browsers send a cookie with the requests of every page, so a token in a cookie counts only for pages of this server and of the origins that `origins` names; `*` and `null` do not count. Make the cookie `HttpOnly`, `Secure` and `SameSite=Lax` or stricter.',
  }),
  origins: list({
    flag: 'origin',
    reloadable: true,
    placeholder: 'origin',
    defaultText: 'same origin; without tokens also pages of this machine',
    check: (value) => (isOriginPattern(value) ? undefined : describeAllowedOrigin()),
    help: 'Origins whose pages may connect: `https://app.example.com`, `https://*.example.com`, or `*` for all.',
    detail:
      'Without this check, any page that a user visits could act in the name of that user. Pages of the server itself are always allowed. An anonymous server on loopback allows `http://localhost`, `http://127.0.0.1` and `http://[::1]` on every port, for development servers, but no other name of its own, because any page can point its own name at this machine. Clients other than browsers send no `Origin` and are always allowed. `https://*.example.com` allows one or more labels before `example.com`, but not `example.com` itself; `http://localhost:*` allows any port; `null` allows sandboxed frames and files.',
  }),
  insecure: toggle({
    help: 'Allow anonymous access beyond this machine.',
    detail:
      'Everyone who can reach the address may then listen and publish anything. Also allows a key set over plain `http://`, where an attacker on the network could insert keys.',
  }),
  apiKeys: list({
    flag: 'api-key',
    placeholder: 'key',
    isSecret: true,
    reloadable: true,
    fromFile: 'file-flag',
    takesText: true,
    // `Authorization: Bearer` carries no other.
    check: (value) =>
      longEnough(value) ??
      (/^[\x21-\x7e]+$/.test(value) ? undefined : 'a key of visible ASCII characters, without spaces'),
    help: 'Keys of the HTTP API; a request with one may do everything there.',
    detail:
      'Several keys let you replace one without an interruption. A file has one key per line. `openssl rand -base64 32` creates a key. Without a key, nobody may list or end connections, or revoke tokens. [http-api.md](http-api.md) has the routes.',
  }),
  trustedProxies: list({
    flag: 'trusted-proxy',
    placeholder: 'range',
    takesText: true,
    check: networkDefect,
    help: 'Addresses of your proxies, which are believed when they name the client in `X-Forwarded-For`.',
    detail:
      'An address, a range (`10.0.0.0/8`, `fd00::/8`), `loopback` or `private`. Name only addresses that clients cannot have: everyone there can claim any address. [security.md](security.md#proxies) has the rules.',
  }),
  proxyProtocol: toggle({
    help: 'Expect the PROXY protocol (version 1 or 2) on the port from all `trustedProxies`.',
    detail:
      'For load balancers that pass TCP on, such as HAProxy with `send-proxy-v2`, or AWS Network Load Balancers: they name the client before the first byte, with TLS too. A connection from a trusted proxy that does not begin with a valid header is closed. Everyone else connects without one. Needs the `native` transport. Not on `adminPort`.',
  }),
}
