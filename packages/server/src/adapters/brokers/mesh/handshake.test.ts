import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { encodeFrame, FRAME, MESH_VERSION, REFUSAL, type Refusal } from './frames.js'
import {
  encodeHello,
  Handshake,
  type Hello,
  type Identity,
  MAX_HANDSHAKE_FRAME_BYTES,
  NONCE_BYTES,
  type Role,
} from './handshake.js'
import { Wire } from './wire.js'

const A: Identity = {
  nodeId: 'a'.repeat(16),
  namespace: 'test',
  rulesHash: 'r'.repeat(16),
  listenPort: 7_400,
  secret: 'correct horse',
}
const B: Identity = { ...A, nodeId: 'b'.repeat(16) }
const TIMEOUT_MS = 5_000

type Outcome = { readonly hello: Hello } | { readonly cause: Error; readonly refusal: Refusal | undefined }

function shake(socket: Socket, role: Role, identity: Identity, timeoutMs = TIMEOUT_MS): Promise<Outcome> {
  return new Promise((resolve) => {
    new Handshake(new Wire(socket, MAX_HANDSHAKE_FRAME_BYTES), role, identity, timeoutMs, {
      authenticated: (_wire, hello) => resolve({ hello }),
      failed: (cause, refusal) => resolve({ cause, refusal }),
    })
  })
}

/** Two ends of a TCP connection, and all that either end reads. */
async function socketPair(): Promise<{ dialer: Socket; acceptor: Socket; received: Record<Role, Buffer[]> }> {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const dialer = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [acceptor] = (await once(server, 'connection')) as [Socket]
  onTestFinished(() => {
    dialer.destroy()
    acceptor.destroy()
    server.close()
  })
  const received: Record<Role, Buffer[]> = { dialer: [], acceptor: [] }
  for (const [role, socket] of Object.entries({ dialer, acceptor }) as [Role, Socket][]) {
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => received[role].push(Buffer.from(chunk)))
  }
  return { dialer, acceptor, received }
}

async function shakeBoth(dialing: Identity, accepting: Identity) {
  const pair = await socketPair()
  const acceptorOutcome = shake(pair.acceptor, 'acceptor', accepting)
  const [dialer, acceptor] = await Promise.all([shake(pair.dialer, 'dialer', dialing), acceptorOutcome])
  return { dialer, acceptor, received: pair.received }
}

describe('the handshake of a mesh', () => {
  it('tells both who the other one is', async () => {
    const { dialer, acceptor } = await shakeBoth(A, B)
    expect(dialer).toEqual({
      hello: { nodeId: B.nodeId, namespace: 'test', rulesHash: A.rulesHash, listenPort: 7_400 },
    })
    expect(acceptor).toEqual({
      hello: { nodeId: A.nodeId, namespace: 'test', rulesHash: A.rulesHash, listenPort: 7_400 },
    })
  })

  it('works without a secret, if neither has one', async () => {
    const { dialer, acceptor } = await shakeBoth({ ...A, secret: '' }, { ...B, secret: '' })
    expect([dialer, acceptor]).toEqual([{ hello: expect.anything() }, { hello: expect.anything() }])
  })

  it.each([
    ['secret', { secret: 'wrong horse' }],
    ['secret', { secret: '' }],
    ['namespace', { namespace: 'other' }],
    ['self', { nodeId: B.nodeId }],
  ] as const)('refuses another %s, and both know why', async (refusal, difference) => {
    for (const [dialing, accepting] of [
      [{ ...A, ...difference }, B],
      [{ ...B, ...difference }, refusal === 'self' ? B : A],
    ] as const) {
      const outcomes = await shakeBoth(dialing, accepting)
      expect([outcomes.dialer, outcomes.acceptor]).toMatchObject([{ refusal }, { refusal }])
      expect(outcomes.dialer).toMatchObject({ cause: { code: 'E_BROKER_REFUSED' } })
    }
  })

  it('never sends the secret, nor the same bytes twice', async () => {
    const all: string[] = []
    for (let round = 0; round < 2; round++) {
      const { received } = await shakeBoth(A, B)
      const bytes = Buffer.concat([...received.dialer, ...received.acceptor])
      expect(bytes.includes(A.secret)).toBe(false)
      all.push(bytes.toString('hex'))
    }
    expect(all[0]).not.toBe(all[1])
  })

  it('tells an acceptor that a stranger has dialled nothing but its hello', async () => {
    const { dialer, acceptor, received } = await socketPair()
    const outcome = shake(acceptor, 'acceptor', A)
    dialer.write(encodeFrame(FRAME.hello, encodeHello(B, new Uint8Array(NONCE_BYTES))))
    dialer.write(encodeFrame(FRAME.proof, new Uint8Array(32)))
    expect(await outcome).toMatchObject({ refusal: 'secret' })
    await once(dialer, 'close')
    const types = frameTypes(Buffer.concat(received.dialer))
    expect(types).toEqual([FRAME.hello, FRAME.refuse])
  })

  it('does not take a proof of another connection', async () => {
    const recorded = await shakeBoth(A, B)
    const { dialer, acceptor } = await socketPair()
    const outcome = shake(acceptor, 'acceptor', B)
    dialer.write(Buffer.concat(recorded.received.acceptor))
    expect(await outcome).toMatchObject({ refusal: 'secret' })
  })

  it('does not take its own proof back', async () => {
    const { dialer, acceptor, received } = await socketPair()
    const outcome = shake(dialer, 'dialer', A)
    acceptor.write(encodeFrame(FRAME.hello, encodeHello(B, new Uint8Array(NONCE_BYTES))))
    const sent = () => Buffer.concat(received.acceptor)
    await vi.waitFor(() => expect(frameTypes(sent())).toEqual([FRAME.hello, FRAME.proof]))
    acceptor.write(sent().subarray(4 + sent().readUInt32LE(0)))
    expect(await outcome).toMatchObject({ refusal: 'secret' })
  })

  it('tells a node of another version so, also one whose hello is longer', async () => {
    for (const [version, more] of [
      [MESH_VERSION + 1, 0],
      [MESH_VERSION + 1, 100],
      [MESH_VERSION - 1, 0],
    ] as const) {
      const { dialer, acceptor, received } = await socketPair()
      const outcome = shake(acceptor, 'acceptor', A)
      const hello = Buffer.concat([encodeHello(B, new Uint8Array(NONCE_BYTES)), Buffer.alloc(more)])
      hello.writeUInt16LE(version, 10)
      dialer.write(encodeFrame(FRAME.hello, hello))
      expect(await outcome).toMatchObject({ refusal: 'version' })
      await once(dialer, 'close')
      expect(Buffer.concat(received.dialer)).toEqual(encodeFrame(FRAME.refuse, Uint8Array.of(REFUSAL.version)))
    }
  })

  it.each([
    ['an HTTP request', Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n')],
    ['a frame that is too large', encodeFrame(FRAME.hello, new Uint8Array(MAX_HANDSHAKE_FRAME_BYTES))],
    ['a proof first', encodeFrame(FRAME.proof, new Uint8Array(32))],
    ['a message first', encodeFrame(FRAME.text, Buffer.from('\x01ab'))],
    ['a refusal', encodeFrame(FRAME.refuse, Uint8Array.of(REFUSAL.self))],
    ['a hello without magic', encodeFrame(FRAME.hello, new Uint8Array(100))],
  ])('closes on %s', async (_what, bytes) => {
    const { dialer, acceptor } = await socketPair()
    const outcome = shake(acceptor, 'acceptor', A)
    dialer.write(bytes)
    expect(await outcome).toMatchObject({ cause: expect.any(Error) })
    if (!dialer.destroyed) await once(dialer, 'close')
  })

  it('closes on whatever else comes, and never takes it for a node', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 600 }), async (bytes) => {
        const { dialer, acceptor } = await socketPair()
        const outcome = shake(acceptor, 'acceptor', A)
        dialer.end(bytes)
        expect(await outcome).toHaveProperty('cause')
      }),
      { numRuns: 30 },
    )
  })

  it('gives a peer that says nothing, or says it byte by byte, its time and no more', async () => {
    const { dialer, acceptor } = await socketPair()
    const outcome = shake(acceptor, 'acceptor', A, 100)
    const hello = encodeFrame(FRAME.hello, encodeHello(B, new Uint8Array(NONCE_BYTES)))
    let at = 0
    const timer = setInterval(() => dialer.write(hello.subarray(at, ++at)), 5)
    onTestFinished(() => clearInterval(timer))
    expect(await outcome).toMatchObject({ cause: { message: 'no handshake within 100 ms' }, refusal: undefined })
    // A write that meets the end is answered with a reset.
    dialer.on('error', () => undefined)
    clearInterval(timer)
    if (!dialer.destroyed) await new Promise((resolve) => dialer.once('close', resolve))
  })
})

function frameTypes(bytes: Buffer): number[] {
  const types: number[] = []
  for (let at = 0; at < bytes.length; at += 4 + bytes.readUInt32LE(at)) types.push(bytes[at + 4] ?? 0)
  return types
}
