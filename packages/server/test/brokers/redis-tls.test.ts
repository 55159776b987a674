import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { freePort, type Service, startRedis } from 'webmq-services'
import { startNode, text } from './redis-node.js'

describe('redis broker over TLS', () => {
  let folder: string
  let service: Service
  let address: string

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'webmq-tls-'))
    const [certificate, key] = [path.join(folder, 'cert.pem'), path.join(folder, 'key.pem')]
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
    const name = ['-subj', '/CN=redis', '-addext', 'subjectAltName=IP:127.0.0.1']
    await promisify(execFile)('openssl', ['req', '-x509', ...curve, ...name, '-out', certificate, '-keyout', key])
    const port = await freePort()
    const files = ['--tls-cert-file', certificate, '--tls-key-file', key, '--tls-ca-cert-file', certificate]
    service = await startRedis({ args: ['--tls-port', String(port), ...files] })
    address = `rediss://127.0.0.1:${port}`
  })
  afterAll(async () => {
    await service.stop()
    await rm(folder, { recursive: true, force: true })
  })

  const fileOf = (name: string) => encodeURIComponent(path.join(folder, name))

  it('shows its certificate and carries messages when it trusts that of the server', async () => {
    const broker = `${address}?ca=${fileOf('cert.pem')}&cert=${fileOf('cert.pem')}&key=${fileOf('key.pem')}`
    const node = await startNode({ broker })
    await node.broker.bind('#')
    await node.broker.publish(text('large', 'x'.repeat(1_000_000)))
    await node.broker.publish(text('small', 'x'))
    await vi.waitFor(() => expect(node.sink.messages.map(({ text: { length } }) => length)).toEqual([1_000_000, 1]))
  })

  it.each([
    ['a certificate that nobody vouches for', () => address],
    ['a file that is not there', () => `${address}?ca=/nowhere/ca.pem`],
  ])('refuses %s at once', async (_, broker) => {
    await expect(startNode({ broker: broker() })).rejects.toMatchObject({ code: 'E_BROKER_REFUSED' })
  })
})
