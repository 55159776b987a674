import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { startCountingProxy } from './counting-proxy.js'

it('a counting proxy passes bytes on, counts them by direction, and ends with its links', async () => {
  const upstream = createServer((socket) => socket.on('data', (bytes) => socket.end(`${bytes}${bytes}`)))
  onTestFinished(() => void upstream.close())
  upstream.listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  const address = upstream.address()
  if (address === null || typeof address === 'string') throw new Error('it has a port')
  const proxy = await startCountingProxy(`amqp://user:word@127.0.0.1:${address.port}/host`)
  expect(proxy.url).toMatch(/^amqp:\/\/user:word@127\.0\.0\.1:\d+\/host$/)
  const client = connect(Number(new URL(proxy.url).port), '127.0.0.1')
  client.write('12345')
  const [answer] = await once(client, 'data')
  expect(String(answer)).toBe('1234512345')
  await once(client, 'close')
  expect(proxy.counts()).toEqual({ up: 5, down: 10 })
  await proxy.stop()
})
