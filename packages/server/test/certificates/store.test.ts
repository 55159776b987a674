import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { WebMQError } from 'webmq-client/protocol'
import { FakeTransport } from 'webmq-conformance'
import { type Certificate, makeCertificate } from 'webmq-services'
import { CertificateStore } from '../../src/features/certificates/store.js'
import type { Logger } from '../../src/kernel/base/logger.js'
import { certificateNames } from '../../src/kernel/ports/certificate-names.js'
import type { Transport } from '../../src/kernel/ports/transport.js'
import type { TlsCertificate } from '../../src/kernel/ports/transport-options.js'

const INTERVAL_MS = 20

/** A transport that notes what it gets. */
class ReloadingTransport extends FakeTransport implements Transport {
  readonly reloads: string[] = []
  refusal: Error | undefined

  setCertificates(certificates: readonly TlsCertificate[]): void {
    if (this.refusal !== undefined) throw this.refusal
    this.reloads.push(certificates.flatMap(({ cert }) => certificateNames(cert)).join(' '))
  }
}

let folder: string
let lines: [level: string, text: string, fields: object][]

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'webmq-certificates-'))
  lines = []
  onTestFinished(() => rmSync(folder, { recursive: true }))
})

const at = (name: string) => path.join(folder, name)
const textsOf = (level: string) => lines.filter(([of]) => of === level).map(([, text]) => text)

/** A logger that notes its lines. */
function createNotes(): Logger {
  const method =
    (level: string) =>
    (...args: unknown[]) => {
      const text = args.find((arg) => typeof arg === 'string') ?? ''
      lines.push([level, text, args.find((arg) => typeof arg === 'object') ?? {}])
    }
  const [info, warn, error] = ['info', 'warn', 'error'].map(method) as [Logger['info'], Logger['warn'], Logger['error']]
  const logger: Logger = { trace: info, debug: info, info, warn, error, fatal: error, child: () => logger }
  return logger
}

function write({ cert, key }: Partial<Certificate>, name = 'a'): void {
  if (cert !== undefined) writeFileSync(at(`${name}.pem`), cert)
  if (key !== undefined) writeFileSync(at(`${name}.key`), key, { mode: 0o600 })
}

/** A store of these files that watches them for the transport. */
async function startStore(transport: Transport, names: readonly string[] = ['a']): Promise<CertificateStore> {
  const files = names.map((name) => ({ certFile: at(`${name}.pem`), keyFile: at(`${name}.key`) }))
  const store = new CertificateStore(files, createNotes(), INTERVAL_MS)
  await store.load()
  store.watch(transport)
  onTestFinished(() => store.stop())
  return store
}

/** Lets the store look at the files a few times. */
const checks = () => new Promise((resolve) => setTimeout(resolve, 6 * INTERVAL_MS))

describe('CertificateStore', () => {
  it('hands new files to the transport, and logs their names', async () => {
    write(await makeCertificate({ names: ['old.example.com'], days: 10 }))
    const transport = new ReloadingTransport()
    const store = await startStore(transport)
    const { firstExpiryMs } = store.stats()
    expect((firstExpiryMs - Date.now()) / 86_400_000).toBeCloseTo(10, 0)
    write(await makeCertificate({ names: ['new.example.com'], days: 20 }))
    await vi.waitFor(() => expect(transport.reloads).toEqual(['new.example.com']))
    expect(store.stats()).toMatchObject({ reloadCount: 1, failedReloadCount: 0 })
    expect(store.stats().firstExpiryMs).toBeGreaterThan(firstExpiryMs)
    expect(lines.at(-1)).toMatchObject(['info', expect.any(String), { certificates: [{ names: ['new.example.com'] }] }])
  })

  it('waits for the second file of a pair', async () => {
    write(await makeCertificate({ names: ['old.example.com'] }))
    const transport = new ReloadingTransport()
    const store = await startStore(transport)
    const next = await makeCertificate({ names: ['new.example.com'] })
    write({ cert: next.cert })
    await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS))
    write({ key: next.key })
    await vi.waitFor(() => expect(transport.reloads).toEqual(['new.example.com']))
    expect(store.stats().reloadCount).toBe(1)
  })

  it.each([
    ['do not fit', { key: 'other' }],
    ['are broken', { cert: 'not PEM' }],
    ['are gone', undefined],
  ])('keeps the old ones when the files %s, says so once, and takes the next', async (_title, fault) => {
    write(await makeCertificate({ names: ['old.example.com'] }))
    const transport = new ReloadingTransport()
    const store = await startStore(transport)
    const other = await makeCertificate({ names: ['other.example.com'] })
    if (fault === undefined) rmSync(at('a.pem'))
    else write('key' in fault ? { key: other.key } : fault)
    await vi.waitFor(() => expect(store.stats().failedReloadCount).toBe(1))
    await checks()
    expect(textsOf('error')).toEqual(['the new TLS certificate cannot be used; the old one stays'])
    expect(transport.reloads).toEqual([])
    write(other)
    await vi.waitFor(() => expect(transport.reloads).toEqual(['other.example.com']))
    expect(store.stats()).toMatchObject({ reloadCount: 1, failedReloadCount: 1 })
  })

  it('keeps the old ones when the transport refuses them', async () => {
    write(await makeCertificate({ names: ['old.example.com'] }))
    const transport = new ReloadingTransport()
    const store = await startStore(transport)
    transport.refusal = new WebMQError('E_OPTION_INVALID', { detail: 'a kind of key that nobody knows' })
    write(await makeCertificate({ names: ['new.example.com'] }))
    await vi.waitFor(() => expect(store.stats().failedReloadCount).toBe(1))
    expect(certificateNames(store.certificates[0]?.cert ?? Buffer.of())).toEqual(['old.example.com'])
  })

  it('follows a link that is exchanged above the files, as Kubernetes does', async () => {
    for (const name of ['old', 'new']) {
      mkdirSync(at(name))
      const { cert, key } = await makeCertificate({ names: [`${name}.example.com`] })
      writeFileSync(at(`${name}/tls.crt`), cert)
      writeFileSync(at(`${name}/tls.key`), key, { mode: 0o600 })
    }
    symlinkSync('old', at('data'))
    symlinkSync('data/tls.crt', at('a.pem'))
    symlinkSync('data/tls.key', at('a.key'))
    const transport = new ReloadingTransport()
    await startStore(transport)
    symlinkSync('new', at('next'))
    renameSync(at('next'), at('data'))
    await vi.waitFor(() => expect(transport.reloads).toEqual(['new.example.com']))
  })

  it('hands over all certificates when one changes', async () => {
    for (const name of ['a', 'b']) write(await makeCertificate({ names: [`${name}.example.com`] }), name)
    const transport = new ReloadingTransport()
    await startStore(transport, ['a', 'b'])
    write(await makeCertificate({ names: ['c.example.com'] }), 'b')
    await vi.waitFor(() => expect(transport.reloads).toEqual(['a.example.com c.example.com']))
  })

  it('does nothing for files that were written again with the same content', async () => {
    const pair = await makeCertificate({ names: ['old.example.com'] })
    write(pair)
    const transport = new ReloadingTransport()
    const store = await startStore(transport)
    write(pair)
    utimesSync(at('a.pem'), 1, 1)
    await checks()
    expect(transport.reloads).toEqual([])
    expect(store.stats()).toMatchObject({ reloadCount: 0, failedReloadCount: 0 })
    expect(lines).toEqual([])
  })

  it('asks for a restart when the transport cannot take them', async () => {
    write(await makeCertificate({ names: ['old.example.com'] }))
    const store = await startStore(new FakeTransport())
    const pair = await makeCertificate({ names: ['new.example.com'] })
    write(pair)
    await vi.waitFor(() => expect(textsOf('warn')).toEqual([expect.stringContaining('at its next start')]))
    // Symptom: it said so for each look at files that were being written.
    write(pair)
    utimesSync(at('a.pem'), 1, 1)
    await checks()
    expect(textsOf('warn')).toHaveLength(1)
    expect(store.stats()).toMatchObject({ reloadCount: 0, failedReloadCount: 0 })
  })

  it('warns at the start, and says once when a certificate expires', async () => {
    write(await makeCertificate({ names: ['old.example.com'], days: -1 }))
    await startStore(new ReloadingTransport())
    expect(textsOf('warn')).toEqual([expect.stringContaining('expired on')])
    await vi.waitFor(() => expect(textsOf('error')).toHaveLength(1))
    await checks()
    expect(textsOf('error')).toEqual(['a TLS certificate has expired: clients refuse it'])
  })

  it('looks no more once it has stopped', async () => {
    write(await makeCertificate({ names: ['old.example.com'] }))
    const transport = new ReloadingTransport()
    const store = await startStore(transport)
    store.stop()
    write(await makeCertificate({ names: ['new.example.com'] }))
    await checks()
    expect(transport.reloads).toEqual([])
  })
})
