import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { type FaultProxy, startFaultProxy } from '../src/index.js'
import { obtainToxiproxy } from '../src/toxiproxy-program.js'

const BUILD_TIMEOUT_MS = 600_000
/** Long enough for passed bytes to arrive; a healthy proxy needs about a millisecond. */
const SILENCE_MS = 200

beforeAll(async () => {
  await obtainToxiproxy()
}, BUILD_TIMEOUT_MS)

describe('a fault proxy', () => {
  it('passes bytes on under the URL of its upstream', async () => {
    const { proxy, upstream } = await startEcho()
    expect(proxy.url).toBe(`redis://user:secret@127.0.0.1:${proxy.port}/3?x=1`)
    expect(proxy.port).not.toBe(upstream.port)
    expect(proxy.port).toBeLessThan(32_768)
    const link = await open(proxy)
    expect(await link.echo('hello')).toBe('hello')
  })

  it('closes all links and refuses new ones when cut, and takes them again when healed', async () => {
    const { proxy } = await startEcho()
    const link = await open(proxy)
    await link.echo('x')
    await proxy.cut()
    await vi.waitFor(() => expect(link.isClosed()).toBe(true))
    await expect(open(proxy)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await proxy.heal()
    expect(await (await open(proxy)).echo('again')).toBe('again')
  })

  it('swallows bytes of old and new links without closing any, until it is healed', async () => {
    const { proxy, upstream } = await startEcho()
    const old = await open(proxy)
    await old.echo('x')
    await proxy.swallow()
    const fresh = await open(proxy)
    const before = upstream.received()
    old.send('lost')
    fresh.send('lost')
    upstream.sendToAll('lost too')
    await expect(old.next(SILENCE_MS)).rejects.toThrow('silence')
    expect(upstream.received()).toBe(before)
    expect([old.isClosed(), fresh.isClosed()]).toEqual([false, false])
    await proxy.heal()
    await vi.waitFor(() => expect(old.isClosed()).toBe(true))
    expect(await (await open(proxy)).echo('again')).toBe('again')
  })

  it('delays bytes in each direction', async () => {
    const { proxy } = await startEcho()
    const link = await open(proxy)
    await proxy.latency(100)
    const startedMs = performance.now()
    expect(await link.echo('slow')).toBe('slow')
    expect(performance.now() - startedMs).toBeGreaterThan(190)
    await proxy.latency(0)
    expect(await link.echo('fast')).toBe('fast')
  })

  it('is gone once stopped, with its links and its port', async () => {
    const { proxy } = await startEcho()
    const link = await open(proxy)
    await proxy.stop()
    await proxy.stop()
    await vi.waitFor(() => expect(link.isClosed()).toBe(true))
    await expect(open(proxy)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await expect(proxy.heal()).rejects.toThrow()
  })
})

async function startEcho() {
  let received = ''
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.setEncoding('utf8').on('data', (text) => {
      received += text
      socket.write(text)
    })
    socket.on('error', () => socket.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const proxy = await startFaultProxy({ url: `redis://user:secret@127.0.0.1:${port}/3?x=1` })
  onTestFinished(async () => {
    await proxy.stop()
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const sendToAll = (text: string) => {
    for (const socket of sockets) socket.write(text)
  }
  return { proxy, upstream: { port, received: () => received, sendToAll } }
}

async function open(proxy: FaultProxy) {
  const socket = connect(proxy.port, proxy.host).setEncoding('utf8')
  await once(socket, 'connect')
  onTestFinished(() => {
    socket.destroy()
  })
  let isClosed = false
  socket.on('close', () => {
    isClosed = true
  })
  socket.on('error', () => socket.destroy())
  const next = async (timeoutMs: number) => {
    const signal = AbortSignal.timeout(timeoutMs)
    const [text] = (await once(socket, 'data', { signal }).catch((cause) => {
      throw new Error('silence', { cause })
    })) as [string]
    return text
  }
  const send = (text: string) => socket.write(text)
  return {
    send,
    next,
    isClosed: () => isClosed,
    async echo(text: string) {
      const answer = next(5_000)
      send(text)
      return await answer
    },
  }
}
