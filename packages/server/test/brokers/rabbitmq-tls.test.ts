import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { freePort, type RabbitmqService, startRabbitmq } from 'webmq-services'
import { newNamespace, nodeOptions, publishText, startNode } from './rabbitmq-node.js'

describe('rabbitmq over TLS', () => {
  let folder: string
  let service: RabbitmqService
  let address: string

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'webmq-tls-'))
    const [certificate, key] = [path.join(folder, 'cert.pem'), path.join(folder, 'key.pem')]
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
    const name = ['-subj', '/CN=rabbit', '-addext', 'subjectAltName=DNS:localhost,DNS:rabbit.internal']
    await promisify(execFile)('openssl', ['req', '-x509', ...curve, ...name, '-out', certificate, '-keyout', key])
    const port = await freePort()
    service = await startRabbitmq({
      config: [
        `listeners.ssl.1 = 127.0.0.1:${port}`,
        `ssl_options.cacertfile = ${certificate}`,
        `ssl_options.certfile = ${certificate}`,
        `ssl_options.keyfile = ${key}`,
        'ssl_options.verify = verify_none',
      ].join('\n'),
    })
    address = `amqps://guest:guest@127.0.0.1:${port}/`
  })

  afterAll(async () => {
    await service?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  const certificateOf = (query: string) =>
    `${address}?cacertfile=${encodeURIComponent(path.join(folder, 'cert.pem'))}${query}`

  it('publishes and consumes with a certificate that it is told to trust', async () => {
    const broker = certificateOf('&server_name_indication=rabbit.internal')
    const node = await startNode(nodeOptions(broker, newNamespace()))
    await node.broker.bind('#')
    await node.broker.publish({ key: 'large', payload: new Uint8Array(1_000_000).fill(0x61), isBinary: true })
    await publishText(node.broker, 'small', '1')
    await vi.waitFor(() => expect(node.received.map(({ text }) => text.length)).toEqual([1_000_000, 1]))
    expect((await service.ctl('list_connections', 'ssl')).trim().split('\n')).toEqual(['true', 'true'])
  })

  it.each([
    ['a certificate that nobody vouches for', () => address],
    ['a certificate of another name', () => certificateOf('&server_name_indication=elsewhere.internal')],
    ['a file that is not there', () => `${address}?cacertfile=/nowhere/ca.pem`],
  ])('refuses %s at once', async (_, broker) => {
    await expect(startNode(nodeOptions(broker(), newNamespace()))).rejects.toMatchObject({ code: 'E_BROKER_REFUSED' })
  })

  it('takes any certificate when it is told not to look', async () => {
    const node = await startNode(nodeOptions(`${address}?verify=verify_none`, newNamespace()))
    expect(node.events).toEqual(['up'])
  })
})
