import { expect, it } from 'vitest'
import { isFromThisMachine, type RequestSource } from './trusted-proxies.js'

const HOST = { host: 'localhost:8080' }

/** A request with these headers. */
function source(headers: Record<string, string>, parts: Partial<RequestSource> = {}): RequestSource {
  return { remoteAddress: '127.0.0.1', header: (name) => headers[name], ...parts }
}

it.each([
  ['of a program', source(HOST)],
  ['over IPv6', source({ host: '[::1]:8080' }, { remoteAddress: '::1' })],
  ['over IPv4 on an IPv6 socket', source(HOST, { remoteAddress: '::ffff:127.0.0.1' })],
  ['of a page of the server', source({ ...HOST, 'sec-fetch-site': 'same-origin' })],
  ['that a user typed in', source({ ...HOST, 'sec-fetch-site': 'none' })],
  ['of a page on another port of this machine', source({ ...HOST, 'sec-fetch-site': 'same-site' })],
  ['that follows a link', source({ ...HOST, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' })],
  [
    'of a page with an origin, which is checked by itself',
    source({ ...HOST, 'sec-fetch-site': 'cross-site', origin: 'http://127.0.0.1:5173' }),
  ],
  ['over a Unix socket', source(HOST, { remoteAddress: 'unix' })],
  [
    'of a client on this machine, through a proxy on a Unix socket',
    source({ ...HOST, 'x-forwarded-for': '::1' }, { remoteAddress: 'unix', clientAddress: '::1' }),
  ],
  [
    'of a client on this machine, through a trusted proxy',
    source({ ...HOST, 'x-forwarded-for': '127.0.0.1', via: '1.1 dev' }, { clientAddress: '127.0.0.1' }),
  ],
])('a request %s comes from this machine', (_what, request) => {
  expect(isFromThisMachine(request)).toBe(true)
})

it.each([
  ['of another machine', source(HOST, { remoteAddress: '192.0.2.7' })],
  [
    'of another machine that says otherwise',
    source({ ...HOST, 'x-forwarded-for': '127.0.0.1' }, { remoteAddress: '192.0.2.7' }),
  ],
  ['through a trusted proxy, from another machine', source(HOST, { clientAddress: '192.0.2.7' })],
  [
    'through a trusted proxy elsewhere, from that machine',
    source(HOST, { remoteAddress: '192.0.2.7', clientAddress: '127.0.0.1' }),
  ],
  [
    'through a Unix socket, from another machine',
    source({ ...HOST, 'x-forwarded-for': '192.0.2.7' }, { remoteAddress: 'unix', clientAddress: '192.0.2.7' }),
  ],
  ['through a Unix socket, with Forwarded', source({ ...HOST, forwarded: 'for=::1' }, { remoteAddress: 'unix' })],
  ['through a Unix socket, for another name', source({ host: 'app.example' }, { remoteAddress: 'unix' })],
  ['over a socket that is gone', source(HOST, { remoteAddress: '' })],
  ['with Forwarded', source({ ...HOST, forwarded: 'for=127.0.0.1' })],
  ['with X-Forwarded-For', source({ ...HOST, 'x-forwarded-for': '127.0.0.1' })],
  ['with X-Real-IP', source({ ...HOST, 'x-real-ip': '127.0.0.1' })],
  ['with Via', source({ ...HOST, via: '1.1 proxy' })],
  ['of a page whose name points here', source({ host: 'evil.example:8080', 'sec-fetch-site': 'same-origin' })],
  ['for a name that begins like this machine', source({ host: 'localhost.evil.example' })],
  ['without Host', source({})],
  ['of an image of a foreign page', source({ ...HOST, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' })],
])('a request %s does not', (_what, request) => {
  expect(isFromThisMachine(request)).toBe(false)
})
