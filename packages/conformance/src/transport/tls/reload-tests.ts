import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { Transport, TransportCapabilities } from 'webmq-server/ports'
import { eventually } from '../eventually.js'
import { DEFAULT_OPTIONS, Harness, SERVER_NAME, type TestedTransport } from '../harness.js'
import type { CertificateFolder } from './certificates.js'
import { serverNamesOf } from './handshake-tests.js'

/** For clients that look at the certificate themselves. */
const ANY = { rejectUnauthorized: false }

/** A record of a handshake that promises 512 bytes, and has 16. */
const HALF_RECORD = Buffer.concat([Buffer.from([22, 3, 1, 2, 0]), Buffer.alloc(16)])

/** Other certificates while the transport runs. */
export function reloadTests(
  create: TestedTransport,
  folder: () => CertificateFolder,
  { tlsReload }: TransportCapabilities,
): void {
  describe('setCertificates', () => {
    if (!tlsReload) {
      it('is absent without the capability', () => {
        const transport: Transport = create(DEFAULT_OPTIONS)
        expect(transport.setCertificates).toBeUndefined()
      })
      return
    }

    it('is for the handshakes that follow, and connections go on', async () => {
      const harness = await Harness.start(create)
      const before = await harness.connect()
      const next = await folder().certificate(SERVER_NAME, 'next.example.com')
      harness.sink.calling(() => harness.transport.setCertificates?.([next]))
      const after = await harness.connectRaw({}, { ca: next.cert })
      expect(serverNamesOf(after.client)).toContain('next.example.com')
      for (const { connection } of [before, after]) harness.transport.send(connection, 'down', false)
      await eventually(() => expect(before.client.messages).toEqual(['down']))
      await eventually(() => expect(after.client.texts).toEqual(['down']))
      before.client.send('up')
      await eventually(() => expect(harness.sink.textsOf(before.connection)).toEqual(['up']))
    })

    it('replaces them all: the default and the names', async () => {
      const [a, b, c] = await Promise.all(['a', 'b', 'c'].map((name) => folder().certificate(`${name}.example.com`)))
      if (a === undefined || b === undefined || c === undefined) throw new Error('three certificates were asked for')
      const harness = await Harness.start(create, { tls: [a, b] })
      const namesFor = async (servername: string) =>
        serverNamesOf(await harness.connectSocket({ ...ANY, servername: `${servername}.example.com` }))
      expect([await namesFor('a'), await namesFor('b'), await namesFor('c')]).toEqual([
        'DNS:a.example.com',
        'DNS:b.example.com',
        'DNS:a.example.com',
      ])
      harness.transport.setCertificates?.([c, a])
      expect([await namesFor('a'), await namesFor('b'), await namesFor('c')]).toEqual([
        'DNS:a.example.com',
        'DNS:c.example.com',
        'DNS:c.example.com',
      ])
    })

    it.each(['a key of another certificate', 'a certificate that is none', 'none at all'])(
      'throws E_OPTION_INVALID for %s, and the old ones stay',
      async (fault) => {
        const harness = await Harness.start(create)
        const [good, other] = await Promise.all([folder().certificate(SERVER_NAME), folder().certificate(SERVER_NAME)])
        const bad =
          fault === 'a key of another certificate'
            ? { ...good, key: other.key, keyFile: other.keyFile }
            : { ...good, cert: Buffer.from('not PEM\n') }
        const set = () => harness.transport.setCertificates?.(fault === 'none at all' ? [] : [good, bad])
        expect(set).toThrow(expect.objectContaining({ code: 'E_OPTION_INVALID' }))
        // The harness trusts the old one alone.
        await harness.expectToServe()
      },
    )

    it('serves a client that connected before the call and shakes hands after it', async () => {
      const harness = await Harness.start(create)
      const waiting = await Promise.all(Array.from({ length: 20 }, () => harness.connectTcp()))
      const next = await folder().certificate(SERVER_NAME)
      harness.transport.setCertificates?.([next])
      for (const client of waiting) client.destroy()
      const client = await harness.connectSocket({ ca: next.cert })
      expect(client.tls.authorized).toBe(true)
    })

    it('takes many in a row, while clients connect', async () => {
      const harness = await Harness.start(create)
      // OpenSSL would not find the right one of several that sign themselves and have the same name.
      const { ca, certificates } = await folder().signed(10, SERVER_NAME)
      harness.transport.setCertificates?.(certificates.slice(0, 1))
      const clients = certificates.flatMap((certificate) => {
        harness.transport.setCertificates?.([certificate])
        return [1, 2, 3].map(() => harness.connectRaw({}, { ca }))
      })
      for (const { client, connection } of await Promise.all(clients)) {
        harness.transport.send(connection, 'hello', false)
        await eventually(() => expect(client.texts).toEqual(['hello']))
      }
    })

    it('takes many while hostile peers connect, and members go on', { timeout: 60_000 }, async () => {
      const harness = await Harness.start(create, { handshakeTimeoutMs: 1_000 })
      const member = await harness.connect()
      const { ca, certificates } = await folder().signed(5, SERVER_NAME)
      for (const certificate of certificates) {
        const crowd = await Promise.all(Array.from({ length: 40 }, () => harness.connectTcp()))
        for (const [place, client] of crowd.entries()) client.write(place % 2 === 0 ? randomBytes(200) : HALF_RECORD)
        harness.transport.setCertificates?.([certificate])
        for (const client of crowd.slice(0, 10)) client.destroy()
        const { client, connection } = await harness.connectRaw({}, { ca })
        harness.transport.send(connection, 'hello', false)
        await eventually(() => expect(client.texts).toEqual(['hello']))
      }
      harness.transport.send(member.connection, 'down', false)
      await eventually(() => expect(member.client.messages).toEqual(['down']))
    })
  })
}
