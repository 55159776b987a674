import { networkDefect } from '../../base/networks.js'
import type { OptionSpec } from '../spec.js'

/** Proxies before the server. */
export const PROXIES_OPTIONS = [
  {
    name: 'trustedProxies',
    section: 'Security',
    flag: 'trusted-proxy',
    type: 'list',
    placeholder: 'range',
    takesText: true,
    defaultText: 'none',
    check: networkDefect,
    help: 'Addresses of your proxies, which are believed when they name the client in `X-Forwarded-For`.',
    detail:
      'An address, a range (`10.0.0.0/8`, `fd00::/8`), `loopback` or `private`. Without it, limits and logs see the address of the proxy instead of the client. Name only addresses that clients cannot have: everyone there can claim any address. The header is read from the right, and addresses of your own proxies are skipped. `Forwarded` and `X-Real-IP` are not read.',
  },
  {
    name: 'proxyProtocol',
    section: 'Security',
    flag: 'proxy-protocol',
    type: 'switch',
    default: false,
    help: 'Expect the PROXY protocol (version 1 or 2) on the port from all `trustedProxies`.',
    detail:
      'For load balancers that pass TCP on, such as HAProxy with `send-proxy-v2`, or AWS Network Load Balancers: they name the client before the first byte, with TLS too. A connection from a trusted proxy that does not begin with a valid header is closed. Everyone else connects without one. Needs the `native` transport. Not on `adminPort`.',
  },
] as const satisfies readonly OptionSpec[]
