import type { OptionSpec } from '../spec.js'

/** Event streams, and what only they need. */
export const SSE_OPTIONS = [
  {
    name: 'sse',
    section: 'Address',
    flag: 'sse',
    type: 'choice',
    choices: ['on', 'off'],
    default: 'on',
    help: 'Whether event streams (SSE) are served at `ssePath`: `on` or `off`.',
    detail:
      'The same rules hold for them as for WebSockets: tokens, origins and limits. [sse.md](sse.md) has the events. The transports `native` and `ws` serve them, on their own port only.',
  },
  {
    name: 'ssePath',
    section: 'Address',
    flag: 'sse-path',
    type: 'text',
    placeholder: 'path',
    default: '/sse',
    check: (value) => (/^\/[^\s?#]*$/.test(value) ? undefined : 'a path that starts with / and has no query'),
    help: 'Path of event streams.',
  },
  {
    name: 'tokenCookie',
    section: 'Security',
    flag: 'token-cookie',
    type: 'text',
    placeholder: 'name',
    check: (value) => (/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(value) ? undefined : 'the name of a cookie'),
    help: 'Cookie that holds the token, if a request has no other; default none.',
    detail:
      'For `EventSource`, which cannot set headers. Browsers send a cookie with the requests of every page, so a token in a cookie counts only for pages of this server and of the origins that `origins` names; `*` and `null` do not count. Make the cookie `HttpOnly`, `Secure` and `SameSite=Lax` or stricter.',
  },
] as const satisfies readonly OptionSpec[]
