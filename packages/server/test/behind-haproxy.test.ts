import { once } from 'node:events'
import { expect, it } from 'vitest'
import { createServer, type ServerOptions } from 'webmq-server'
import { startLoadBalancer } from 'webmq-services'
import { WebSocket } from 'ws'
import { recordingLogger } from './fake-server.js'

/** Of this machine too, so that a client can have it, but not the balancer's. */
const CLIENT = '127.0.0.7'
const API_KEY = 'k'.repeat(32)

async function serverBehind(proxyProtocol: boolean, options: ServerOptions) {
  const { logger } = recordingLogger()
  const server = createServer({ port: 0, logger, jwt: { secret: 'x'.repeat(32) }, apiKeys: [API_KEY], ...options })
  const { port } = await server.start()
  const balancer = await startLoadBalancer({ ports: [port], proxyProtocol })
  const connect = async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${balancer.port}/ws`, { localAddress: CLIENT })
    const opened = await Promise.race([once(socket, 'open'), once(socket, 'error').then(() => undefined)])
    return opened === undefined ? undefined : socket
  }
  return {
    connect,
    /** Addresses as the API lists them; the request itself takes the same way. */
    addresses: async () => {
      const headers = { authorization: `Bearer ${API_KEY}` }
      const response = await fetch(`${balancer.url}/api/connections`, { headers })
      const { connections } = (await response.json()) as { connections: { address: string }[] }
      return connections.map(({ address }) => address)
    },
    [Symbol.asyncDispose]: async () => {
      await balancer.stop()
      await server.stop({ drainMs: 0 })
    },
  }
}

const TRUSTING = { trustedProxies: ['127.0.0.1'] }

it.each([
  ['by X-Forwarded-For', false, { ...TRUSTING, transport: 'native' }],
  ['by the PROXY protocol', true, { ...TRUSTING, transport: 'native', proxyProtocol: true }],
] as const)('behind HAProxy, the client is known %s', async (_how, proxyProtocol, options) => {
  await using behind = await serverBehind(proxyProtocol, options)
  // The balancer asks /ready first, through the same port.
  await expect.poll(async () => (await behind.connect()) !== undefined, { timeout: 10_000 }).toBe(true)
  expect(await behind.addresses()).toEqual([CLIENT])
})

it('behind HAProxy, its header is not believed without --trusted-proxy', async () => {
  await using behind = await serverBehind(false, { transport: 'native' })
  await expect.poll(async () => (await behind.connect()) !== undefined, { timeout: 10_000 }).toBe(true)
  expect(await behind.addresses()).toEqual(['127.0.0.1'])
})

it('does not start with --proxy-protocol and a transport that does not read it', async () => {
  const { logger } = recordingLogger()
  const server = createServer({ port: 0, logger, ...TRUSTING, transport: 'ws', proxyProtocol: true })
  await expect(server.start()).rejects.toMatchObject({
    code: 'E_OPTION_INVALID',
    message: expect.stringContaining('--transport native'),
  })
})
