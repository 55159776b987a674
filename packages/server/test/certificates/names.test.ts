import { describe, expect, it } from 'vitest'
import { makeCertificate } from 'webmq-services'
import { certificateIndexFor, certificateNames } from '../../src/kernel/ports/certificate-names.js'

describe('certificateNames', () => {
  it('are the DNS names, in lower case, and no addresses', async () => {
    const { cert } = await makeCertificate({ names: ['Shop.example.com', '127.0.0.1', '*.example.org', '::1'] })
    expect(certificateNames(Buffer.from(cert))).toEqual(['shop.example.com', '*.example.org'])
  })

  it('are those of the first certificate of a chain', async () => {
    const issuer = await makeCertificate({ names: ['issuer.example.com'], isIssuer: true })
    const { cert } = await makeCertificate({ names: ['a.example.com'], issuer })
    expect(certificateNames(Buffer.from(cert + issuer.cert))).toEqual(['a.example.com'])
  })
})

describe('certificateIndexFor', () => {
  const names = [['example.com'], ['*.example.com', 'a.b.example.com'], ['chat.example.com', '*.example.com']]

  it.each([
    ['example.com', 0],
    ['EXAMPLE.com', 0],
    ['shop.example.com', 1],
    ['chat.example.com', 2],
    ['a.b.example.com', 1],
    ['x.b.example.com', 0],
    ['localhost', 0],
    ['', 0],
  ])('finds for %j certificate %i', (name, index) => {
    expect(certificateIndexFor(name, names)).toBe(index)
  })
})
