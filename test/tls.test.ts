import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:https'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { connect } from 'node:tls'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { ClientOptions, WebMQClient } from 'webmq-client'
import { type Certificate, freePort, makeCertificate } from 'webmq-services'
import { WebSocket } from 'ws'
import { startChromium } from './chromium.js'
import { startClient } from './live.js'
import { startServerProcess } from './server-process.js'

/** The files are looked at every 5 s, and a pair that does not fit is looked at twice. */
const RELOAD_MS = 60_000

describe.each([
  { transport: 'native', reloads: true },
  { transport: 'uws', reloads: false },
])('a server with TLS, transport $transport', (given) => {
  let folder: string

  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'webmq-tls-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
  })

  /** The flags of these files, which are written. */
  function write(name: string, { cert, key }: Certificate): string[] {
    const [certFile, keyFile] = ['crt', 'key'].map((end) => path.join(folder, `${name}.${end}`)) as [string, string]
    writeFileSync(certFile, cert)
    writeFileSync(keyFile, key, { mode: 0o600 })
    return ['--tls-cert', certFile, '--tls-key', keyFile]
  }

  async function start(...flags: string[]) {
    const port = await freePort()
    const server = await startServerProcess(port, ['--transport', given.transport, '--log-format', 'json', ...flags])
    onTestFinished(async () => void (await server.kill('SIGKILL')))
    return { ...server, port }
  }

  /** A client that trusts these certificates, and asks for the host name that the first of them has. */
  function startSecureClient(port: number, ...trusted: readonly Certificate[]) {
    class SecureWebSocket extends WebSocket {
      constructor(address: string, protocols: string[]) {
        super(address, protocols, { ca: trusted.map(({ cert }) => cert) })
      }
    }
    const options: Partial<ClientOptions> = { WebSocket: SecureWebSocket }
    return startClient(`wss://localhost:${port}/ws`, options)
  }

  async function collect(client: WebMQClient, pattern: string): Promise<unknown[]> {
    const payloads: unknown[] = []
    await client.listen(pattern, (payload) => payloads.push(payload)).ready
    return payloads
  }

  /** The names of the certificate that a new connection gets. */
  async function namesFor(port: number, servername: string): Promise<string | undefined> {
    const socket = connect({ port, host: '127.0.0.1', servername, rejectUnauthorized: false })
    try {
      await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
      return socket.getPeerCertificate().subjectaltname
    } finally {
      socket.destroy()
    }
  }

  async function fetchText(port: number, path: string, { cert }: Certificate): Promise<string> {
    return await new Promise((resolve, reject) => {
      get({ host: 'localhost', port, path, ca: cert, agent: false }, (response) => {
        response.setEncoding('utf8')
        let text = ''
        response.on('data', (chunk) => (text += chunk)).on('end', () => resolve(text))
      }).on('error', reject)
    })
  }

  it('serves clients and HTTP, picks the certificate of the host, and keeps probes on plain HTTP', async () => {
    const [first, second] = await Promise.all([
      makeCertificate({ names: ['localhost', '127.0.0.1'], days: 30 }),
      makeCertificate({ names: ['*.example.com'], days: 10 }),
    ])
    const adminPort = await freePort()
    const flags = [...write('a', first), ...write('b', second), '--admin-port', String(adminPort), '--demo']
    const { port, url, output } = await start(...flags)
    expect(url).toBe(`https://127.0.0.1:${port}`)
    expect(output()).toContain(`Demo page: https://127.0.0.1:${port}/`)
    const [{ client }, { client: other }] = [startSecureClient(port, first), startSecureClient(port, first)]
    const payloads = await collect(client, 'chat.*')
    await other.publish('chat.1', 'x'.repeat(100_000))
    await other.publish('chat.2', { text: 'grüß' })
    await vi.waitFor(() => expect(payloads).toEqual(['x'.repeat(100_000), { text: 'grüß' }]))
    expect(JSON.parse(await fetchText(port, '/health', first))).toMatchObject({ status: 'ok', server: 'webmq' })
    expect(await namesFor(port, 'shop.example.com')).toBe('DNS:*.example.com')
    expect(await namesFor(port, 'example.org')).toContain('DNS:localhost')
    const metrics = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()
    const expiry = Number(/^webmq_tls_certificate_expiration_timestamp_seconds (\S+)$/m.exec(metrics)?.[1])
    expect((expiry * 1_000 - Date.now()) / 86_400_000).toBeCloseTo(10, 0)
  })

  it('connects pages of its own', async () => {
    const certificate = await makeCertificate({ names: ['localhost', '127.0.0.1'] })
    const { url } = await start(...write('a', certificate), '--demo')
    const browser = await startChromium()
    onTestFinished(() => browser.close())
    const page = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage()
    await page.goto(url)
    await page.locator('.state[data-state="connected"]').first().waitFor({ timeout: 20_000 })
  })

  it('gives a renewed certificate to new connections, and the others notice nothing', async () => {
    const [before, after] = await Promise.all([
      makeCertificate({ names: ['localhost'] }),
      makeCertificate({ names: ['localhost', 'renewed.example.com'] }),
    ])
    const { port, output } = await start(...write('a', before))
    const { client, changes } = startSecureClient(port, before)
    const payloads = await collect(client, 'a')
    write('a', after)
    if (given.reloads) {
      await vi.waitFor(async () => expect(await namesFor(port, 'localhost')).toContain('renewed'), RELOAD_MS)
      await vi.waitFor(() => expect(output()).toContain('new connections get the new TLS certificate'))
    } else {
      await vi.waitFor(() => expect(output()).toContain('this transport takes it at its next start'), RELOAD_MS)
      expect(await namesFor(port, 'localhost')).not.toContain('renewed')
    }
    const { client: newcomer } = startSecureClient(port, given.reloads ? after : before)
    await newcomer.publish('a', 'after the renewal')
    await vi.waitFor(() => expect(payloads).toEqual(['after the renewal']))
    expect(changes.map(({ state }) => state)).not.toContain('reconnecting')
  })

  it('does not start with files that do not fit, and names them', async () => {
    const [one, other] = await Promise.all([
      makeCertificate({ names: ['localhost'] }),
      makeCertificate({ names: ['localhost'] }),
    ])
    const certificate = write('a', { ...one, key: other.key })
    await expect(start(...certificate)).rejects.toThrow(
      /a\.key does not belong to the certificate .*\(E_OPTION_INVALID\)/,
    )
    await expect(start(...certificate.slice(0, 2))).rejects.toThrow(/tls\.keyFile \(--tls-key\) \(E_OPTION_INVALID\)/)
    const missing = path.join(folder, 'missing.pem')
    const flags = ['--tls-cert', missing, '--tls-key', missing]
    await expect(start(...flags)).rejects.toThrow(`tls.certFile: cannot read ${missing} (ENOENT)`)
  })
})
