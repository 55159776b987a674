import { describeAllowedOrigin, isOriginPattern } from '../../identity/origin.js'
import type { OptionSpec } from '../spec.js'

/** Who may connect at all. */
export const SECURITY_OPTIONS = [
  {
    name: 'origins',
    section: 'Security',
    flag: 'origin',
    reloadable: true,
    type: 'list',
    placeholder: 'origin',
    defaultText: 'same origin; without tokens also pages of this machine',
    check: (value) => (isOriginPattern(value) ? undefined : describeAllowedOrigin()),
    help: 'Origins whose pages may connect: `https://app.example.com`, `https://*.example.com`, or `*` for all.',
    detail:
      'Without this check, any page that a user visits could act in the name of that user. Pages of the server itself are always allowed. An anonymous server on loopback allows `http://localhost`, `http://127.0.0.1` and `http://[::1]` on every port, for development servers, but no other name of its own, because any page can point its own name at this machine. Clients other than browsers send no `Origin` and are always allowed. `https://*.example.com` allows one or more labels before `example.com`, but not `example.com` itself; `http://localhost:*` allows any port; `null` allows sandboxed frames and files.',
  },
  {
    name: 'insecure',
    section: 'Security',
    flag: 'insecure',
    type: 'switch',
    default: false,
    help: 'Allow anonymous access beyond this machine.',
    detail:
      'Everyone who can reach the address may then listen and publish anything. Also allows a key set over plain `http://`, where an attacker on the network could insert keys.',
  },
] as const satisfies readonly OptionSpec[]
