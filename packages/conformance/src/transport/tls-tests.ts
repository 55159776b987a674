import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { TlsCertificate, TransportCapabilities } from 'webmq-server/ports'
import { eventually } from './eventually.js'
import { type CreateTransport, DEFAULT_OPTIONS, Harness } from './harness.js'
import { RecordingSink } from './recording-sink.js'
import type { TransportTraits } from './traits.js'
import { WebSocketClient } from './web-socket-client.js'

/** Makes a certificate of these names (host names, wildcards, IP addresses), PEM. */
export type MakeCertificate = (options: {
  readonly names: readonly string[]
}) => Promise<{ readonly cert: string; readonly key: string }>

/** TLS of the transport itself. */
export function tlsTests(
  create: CreateTransport,
  makeCertificate: MakeCertificate,
  { tls }: TransportCapabilities,
  _traits: TransportTraits,
): void {
  /** A certificate of these names in files of this test. */
  async function certificate(...names: string[]): Promise<TlsCertificate> {
    const { cert, key } = await makeCertificate({ names })
    const folder = mkdtempSync(path.join(tmpdir(), 'webmq-tls-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const [certFile, keyFile] = [path.join(folder, 'cert.pem'), path.join(folder, 'key.pem')]
    writeFileSync(certFile, cert)
    writeFileSync(keyFile, key)
    return { certFile, keyFile, cert: Buffer.from(cert), key: Buffer.from(key) }
  }

  describe('tls', () => {
    it.runIf(tls)('serves WebSockets and HTTP', async () => {
      const httpServer = createServer((incoming, response) => {
        response.end(`encrypted: ${'encrypted' in incoming.socket && incoming.socket.encrypted}`)
      })
      const harness = await Harness.start(create, { tls: [await certificate('localhost')], httpServer })
      const url = `wss://127.0.0.1:${harness.port}/`
      const client = harness.track(await WebSocketClient.open(url, { rejectUnauthorized: false }))
      const connection = await harness.connectionAt('/')
      client.send('up')
      await eventually(() => expect(harness.sink.textsOf(connection)).toEqual(['up']))
      const texts = Array.from({ length: 500 }, (_, index) => `${index} ${'x'.repeat(1_000)}`)
      for (const text of texts) harness.transport.send(connection, text, false)
      await eventually(() => expect(client.messages).toEqual(texts))
      const body = await new Promise<string>((resolve, reject) => {
        const options = { port: harness.port, rejectUnauthorized: false, agent: false }
        request(options, (response) => response.on('data', (chunk) => resolve(String(chunk))))
          .on('error', reject)
          .end()
      })
      expect(body).toBe('encrypted: true')
    })

    it.runIf(tls)('fails with E_OPTION_INVALID when a key belongs to another certificate', async () => {
      const [one, other] = await Promise.all([certificate('localhost'), certificate('localhost')])
      const mixed = { ...one, keyFile: other.keyFile, key: other.key }
      const started = create({ ...DEFAULT_OPTIONS, tls: [mixed] }).start(new RecordingSink())
      await expect(started).rejects.toMatchObject({ code: 'E_OPTION_INVALID' })
    })

    it.runIf(!tls)('is refused instead of going without', async () => {
      const options = { ...DEFAULT_OPTIONS, tls: [await certificate('localhost')] }
      const start = async () => create(options).start(new RecordingSink())
      await expect(start()).rejects.toMatchObject({ code: expect.toBeOneOf(['E_OPTION_INVALID', 'E_UNSUPPORTED']) })
    })
  })
}
