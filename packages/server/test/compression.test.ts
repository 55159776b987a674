import { describe, expect, it, onTestFinished } from 'vitest'
import { itWhere } from 'webmq-conformance'
import { createServer } from '../src/create-server.js'
import type { ServerOptions } from '../src/doors/options/server-options.js'
import { ProtocolClient } from './protocol-client.js'

describe.each(['native', 'ws', 'uws'] as const)('compression on the %s transport', (transport) => {
  async function start(options: ServerOptions) {
    const server = createServer({ transport, port: 0, logLevel: 'silent', closeTimeoutMs: 500, ...options })
    onTestFinished(() => server.stop({ drainMs: 0 }))
    const { url } = await server.start()
    const connect = async (perMessageDeflate: boolean) => {
      const client = await ProtocolClient.open(url, { perMessageDeflate })
      onTestFinished(() => client.socket.terminate())
      return client
    }
    return { server, connect }
  }

  it('is off unless it is asked for', async () => {
    const { connect } = await start({})
    const client = await connect(true)
    expect(client.socket.extensions).toBe('')
  })

  it('carries messages between clients with and without it', async () => {
    const { connect } = await start({ compression: true, compressionThresholdBytes: 100 })
    const clients = [await connect(true), await connect(false)]
    expect(clients.map(({ socket }) => socket.extensions)).toEqual(['permessage-deflate', ''])
    for (const client of clients) await client.request((id) => ({ verb: 'listen', id, pattern: '#' }))
    const payloads = ['"short"', JSON.stringify({ text: 'ä long one. '.repeat(1_000) })]
    for (const client of clients) {
      for (const payload of payloads) {
        await client.request((id) => ({ verb: 'publish', id, key: 'a', echo: true, payload }))
      }
    }
    for (const client of clients) {
      await client.until(() => client.payloads.length === 4)
      expect(client.payloads).toEqual([...payloads, ...payloads])
    }
  })

  itWhere(transport !== 'uws')('sends fewer bytes', async () => {
    const { server, connect } = await start({ compression: true })
    const clients = await Promise.all(Array.from({ length: 10 }, () => connect(true)))
    for (const client of clients) await client.request((id) => ({ verb: 'listen', id, pattern: '#' }))
    const text = 'much of the same, '.repeat(5_000)
    await server.publish('a', text)
    for (const client of clients) await client.until(() => client.payloads.length === 1)
    expect(server.stats().transport.sentByteCount).toBeLessThan(text.length)
  })
})
