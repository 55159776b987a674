import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Link } from './link.js'

const BOTH = ['upstream', 'downstream'] as const
/** Long enough for bytes on loopback to come if they could. */
const QUIET_MS = 100
const WAIT = { timeout: 20_000, interval: 5 }

let server: Server
let link: Link
const far: Socket[] = []
const near: Client[] = []

beforeEach(async () => {
  server = createServer({ allowHalfOpen: false }, (socket) => {
    far.push(socket)
    socket.on('error', () => undefined)
    socket.pipe(socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  link = await Link.start((server.address() as AddressInfo).port)
})

afterEach(() => {
  link.stop()
  for (const { socket } of near.splice(0)) socket.destroy()
  for (const socket of far.splice(0)) socket.destroy()
  server.close()
})

interface Client {
  readonly socket: Socket
  received: string
  isClosed: boolean
}

function dial(): Client {
  const client: Client = { socket: connect(link.port, '127.0.0.1'), received: '', isClosed: false }
  near.push(client)
  client.socket.on('data', (bytes) => {
    client.received += bytes.toString()
  })
  client.socket.on('error', () => undefined)
  client.socket.on('close', () => {
    client.isClosed = true
  })
  return client
}

const gets = async (client: Client, text: string) => {
  await vi.waitFor(() => expect(client.received).toBe(text), WAIT)
}

const isCut = async (client: Client) => {
  await vi.waitFor(() => expect(client.isClosed).toBe(true), WAIT)
}

/** A connection through which something has come back. */
async function dialed(): Promise<Client> {
  const client = dial()
  client.socket.write('a')
  await gets(client, 'a')
  return client
}

describe('a link', () => {
  it('passes bytes and closes on', async () => {
    const client = await dialed()
    client.socket.end('b')
    await gets(client, 'ab')
    await isCut(client)
    await vi.waitFor(() => expect(far[0]?.destroyed).toBe(true), WAIT)
  })

  it('that is cut resets what there is and what comes, until it is healed', async () => {
    const client = await dialed()
    link.break({ fault: 'cut' })
    await isCut(client)
    await isCut(dial())
    link.heal()
    await dialed()
  })

  it('that stalls passes everything on when it is healed', async () => {
    const client = await dialed()
    link.break({ fault: 'stall', streams: BOTH })
    client.socket.write('b')
    const other = dial()
    other.socket.write('c')
    await sleep(QUIET_MS)
    expect([client.received, other.received]).toEqual(['a', ''])
    link.heal()
    await gets(client, 'ab')
    await gets(other, 'c')
  })

  it('that stalls tells of a close when it is healed', async () => {
    const client = await dialed()
    link.break({ fault: 'stall', streams: BOTH })
    far[0]?.destroy()
    await sleep(QUIET_MS)
    expect(client.isClosed).toBe(false)
    link.heal()
    await isCut(client)
  })

  it('that swallows loses bytes, and resets what has lost some when it is healed', async () => {
    const [loser, other] = [await dialed(), await dialed()]
    link.break({ fault: 'swallow', streams: BOTH })
    loser.socket.write('b')
    await sleep(QUIET_MS)
    expect([loser.received, loser.isClosed]).toEqual(['a', false])
    link.heal()
    await isCut(loser)
    expect(loser.received).toBe('a')
    other.socket.write('b')
    await gets(other, 'ab')
  })

  it('that breaks in one direction passes the other one on', async () => {
    const client = await dialed()
    link.break({ fault: 'stall', streams: ['downstream'] })
    let heard = ''
    far[0]?.on('data', (bytes) => {
      heard += bytes.toString()
    })
    client.socket.write('b')
    await vi.waitFor(() => expect(heard).toBe('b'), WAIT)
    expect(client.received).toBe('a')
    link.break({ fault: 'stall', streams: ['upstream'] })
    await gets(client, 'ab')
    far[0]?.write('x')
    client.socket.write('c')
    await gets(client, 'abx')
    link.heal()
    await gets(client, 'abxc')
  })

  it('that is slow passes bytes on later', async () => {
    const client = await dialed()
    link.break({ fault: 'latency', delayMs: 60 })
    const fromMs = performance.now()
    client.socket.write('b')
    await gets(client, 'ab')
    // There and back. Timers may be a millisecond early.
    expect(performance.now() - fromMs).toBeGreaterThanOrEqual(118)
  })

  it('that is throttled keeps to its bytes per second', async () => {
    const client = await dialed()
    link.break({ fault: 'throttle', bytesPerSecond: 10_000 })
    const fromMs = performance.now()
    client.socket.write('b'.repeat(1_000))
    await gets(client, `a${'b'.repeat(1_000)}`)
    expect(performance.now() - fromMs).toBeGreaterThanOrEqual(190)
  })

  it('holds back a sender that its reader does not keep up with', async () => {
    const client = await dialed()
    link.break({ fault: 'stall', streams: BOTH })
    const chunk = 'x'.repeat(1_048_576)
    for (let count = 0; count < 16; count++) client.socket.write(chunk)
    await sleep(QUIET_MS)
    expect(client.socket.writableLength).toBeGreaterThan(0)
    link.heal()
    await vi.waitFor(() => expect(client.received.length).toBe(1 + 16 * chunk.length), WAIT)
  })
})
