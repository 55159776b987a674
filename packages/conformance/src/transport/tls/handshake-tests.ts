import { createPrivateKey } from 'node:crypto'
import type { ConnectionOptions } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { eventually } from '../eventually.js'
import { type CreateTransport, DEFAULT_OPTIONS, Harness, SERVER_NAME } from '../harness.js'
import type { RawClient } from '../raw-client.js'
import { RecordingSink } from '../recording-sink.js'
import type { TransportTraits } from '../traits.js'
import type { CertificateFolder, MakeCertificate } from './certificates.js'

const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const

/** The names of the certificate that the server has sent. */
export function serverNamesOf({ tls }: RawClient): string | undefined {
  return tls.getPeerCertificate().subjectaltname
}

/** The session that a client may resume; TLS 1.3 sends it after the handshake, with the first answer. */
async function sessionOf({ tls }: RawClient): Promise<Buffer> {
  return await eventually(() => {
    const session = tls.getSession()
    if (session === undefined || (tls.getProtocol() === 'TLSv1.3' && tls.getTLSTicket() === undefined)) {
      throw new Error('the server has sent no session')
    }
    return session
  })
}

/** Versions, ALPN, the choice of a certificate, resumption. */
export function handshakeTests(
  create: CreateTransport,
  makeCertificate: MakeCertificate,
  folder: () => CertificateFolder,
  traits: TransportTraits,
): void {
  const start = async (...names: string[]) => Harness.start(create, { tls: [await folder().certificate(...names)] })

  describe('handshake', () => {
    it.each(VERSIONS)('speaks %s', async (version) => {
      const harness = await start(SERVER_NAME)
      const { client, connection } = await harness.connectRaw({}, { minVersion: version, maxVersion: version })
      expect(client.tls.getProtocol()).toBe(version)
      expect(client.tls.authorized).toBe(true)
      harness.transport.send(connection, 'hello', false)
      await eventually(() => expect(client.texts).toEqual(['hello']))
    })

    it('refuses TLS 1.1', async () => {
      const harness = await start(SERVER_NAME)
      const old: ConnectionOptions = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }
      await expect(harness.connectSocket(old)).rejects.toThrow()
      await harness.expectToServe()
    })

    it('serves http/1.1 only', async () => {
      const harness = await start(SERVER_NAME)
      const client = await harness.connectSocket({ ALPNProtocols: ['h2', 'http/1.1'] })
      expect(client.tls.alpnProtocol).toBe(traits.alpn ? 'http/1.1' : false)
      // RFC 7301 §3.2: a server may refuse such a client, but not choose what it does not speak.
      const other = await harness.connectSocket({ ALPNProtocols: ['h2'] }).catch(() => undefined)
      expect(other?.tls.alpnProtocol ?? false).toBe(false)
      await harness.expectToServe()
    })

    it.each([
      ['5,000 names', Array.from({ length: 5_000 }, (_, place) => `name-${place}`)],
      ['5,000 names and the right one', [...Array.from({ length: 5_000 }, (_, place) => `name-${place}`), 'http/1.1']],
      ['the right one 5,000 times', Array<string>(5_000).fill('http/1.1')],
      ['a name of 255 bytes', ['x'.repeat(255)]],
      ['almost the right one', ['HTTP/1.1', 'http/1.1\0', 'http/1.10', 'http/1.']],
    ])('chooses http/1.1 or nothing of a client that offers %s, and serves the others', async (_title, names) => {
      const harness = await start(SERVER_NAME)
      const client = await harness.connectSocket({ ALPNProtocols: names }).catch(() => undefined)
      expect(names.includes('http/1.1') ? ['http/1.1', false] : [false]).toContain(client?.tls.alpnProtocol ?? false)
      await harness.expectToServe()
    })

    it.each([
      [undefined, 'default.example.com'],
      ['default.example.com', 'default.example.com'],
      ['unknown.example.org', 'default.example.com'],
      ['example.com', 'default.example.com'],
      ['shop.example.com', '*.example.com'],
      ['SHOP.Example.com', traits.ignoresServerNameCase ? '*.example.com' : 'default.example.com'],
      ['a.shop.example.com', 'default.example.com'],
      ['chat.example.com', 'chat.example.com'],
    ])('answers a client that asks for %s with the certificate of %s', async (servername, name) => {
      const names = ['default.example.com', '*.example.com', 'chat.example.com']
      const tls = await Promise.all(names.map((each) => folder().certificate(each)))
      const harness = await Harness.start(create, { tls })
      const options = { rejectUnauthorized: false, servername: servername ?? '' }
      const { client, connection } = await harness.connectRaw({}, options)
      expect(serverNamesOf(client)).toBe(`DNS:${name}`)
      harness.transport.send(connection, 'hello', false)
      await eventually(() => expect(client.texts).toEqual(['hello']))
    })

    it('sends the intermediate certificates, so clients that trust the root accept it', async () => {
      const root = await makeCertificate({ names: ['root.example.com'], isIssuer: true })
      const issuer = await makeCertificate({ names: ['issuer.example.com'], isIssuer: true, issuer: root })
      const { cert, key } = await makeCertificate({ names: [SERVER_NAME], issuer })
      const harness = await Harness.start(create, { tls: [folder().write({ cert: cert + issuer.cert, key })] })
      const client = await harness.connectSocket({ ca: root.cert })
      expect(client.tls.authorized).toBe(true)
    })

    it('takes a key in the older form of its kind (SEC 1)', async () => {
      const { cert, key } = await makeCertificate({ names: [SERVER_NAME] })
      const sec1 = createPrivateKey(key).export({ type: 'sec1', format: 'pem' }).toString()
      const harness = await Harness.start(create, { tls: [folder().write({ cert, key: sec1 })] })
      await harness.expectToServe()
    })

    it.each(VERSIONS)('resumes a session of %s', async (version) => {
      const harness = await start(SERVER_NAME)
      const options = { minVersion: version, maxVersion: version }
      const { client, connection } = await harness.connectRaw({}, options)
      harness.transport.send(connection, 'hello', false)
      await eventually(() => expect(client.texts).toEqual(['hello']))
      const session = await sessionOf(client)
      expect(client.tls.isSessionReused()).toBe(false)
      const again = await harness.connectRaw({}, { ...options, session })
      expect(again.client.tls.isSessionReused()).toBe(true)
      harness.transport.send(again.connection, 'again', false)
      await eventually(() => expect(again.client.texts).toEqual(['again']))
    })

    it.each([
      ['a key of another certificate', { key: 'other' }],
      ['a certificate that is none', { cert: 'not PEM\n' }],
      ['a key that is none', { key: 'not PEM\n' }],
    ])('fails to start with E_OPTION_INVALID for %s', async (_title, fault) => {
      const { cert, key } = await makeCertificate({ names: [SERVER_NAME] })
      const other = await makeCertificate({ names: [SERVER_NAME] })
      const bad = { cert, key, ...fault }
      const tls = [folder().write({ ...bad, key: bad.key === 'other' ? other.key : bad.key })]
      const started = async () => create({ ...DEFAULT_OPTIONS, tls }).start(new RecordingSink())
      await expect(started()).rejects.toMatchObject({ code: 'E_OPTION_INVALID' })
    })
  })
}
