import { describe, expect, it } from 'vitest'
import { isOriginAllowed } from '../../kernel/identity/origin.js'
import { originPolicyOf } from './access.js'
import { resolveOptions } from './options.js'
import type { ServerOptions } from './server-options.js'

function allows(options: ServerOptions, origin: string, host = '127.0.0.1:8080'): boolean {
  const { origins, ownHosts } = originPolicyOf(resolveOptions(options))
  return isOriginAllowed(origin, host, origins, ownHosts)
}

const TLS = { certFile: 'a.pem', keyFile: 'a.key' }
const JWT = { secret: 'a secret of more than thirty-two bytes' }

describe('originPolicyOf', () => {
  it('lets pages of development servers on this machine in, with TLS their secure ones too', () => {
    expect(allows({}, 'http://localhost:5173')).toBe(true)
    expect(allows({}, 'https://localhost:5173')).toBe(false)
    for (const origin of [
      'http://localhost:5173',
      'https://localhost:5173',
      'https://127.0.0.1:5173',
      'https://[::1]',
    ]) {
      expect(allows({ tls: TLS }, origin), origin).toBe(true)
    }
    expect(allows({ tls: TLS }, 'https://localhost.evil.example')).toBe(false)
  })

  it('lets its own pages in when it serves TLS, with and without the default port', () => {
    const options = { tls: TLS, jwt: JWT, host: '0.0.0.0' }
    expect(allows(options, 'https://app.example.com', 'app.example.com')).toBe(true)
    expect(allows(options, 'https://app.example.com', 'app.example.com:443')).toBe(true)
    expect(allows(options, 'https://app.example.com:8443', 'app.example.com:8443')).toBe(true)
    expect(allows(options, 'https://app.example.com:8443', 'app.example.com')).toBe(false)
    expect(allows(options, 'https://localhost:5173', 'app.example.com')).toBe(false)
  })
})
