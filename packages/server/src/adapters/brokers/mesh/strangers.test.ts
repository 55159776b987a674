import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { eventually, historyOf } from 'webmq-conformance'
import { MeshBroker } from './broker.js'
import { decodeStart, encodeFrame, encodeSequence, encodeStarted, FRAME } from './frames.js'
import { Handshake, MAX_HANDSHAKE_FRAME_BYTES } from './handshake.js'
import { Wire } from './wire.js'

const SECRET = 'shared by the nodes of this test'
/** Higher than any id of a node, so that the node decides about links. */
const STRANGER = 'f'.repeat(16)

interface Node {
  readonly broker: MeshBroker
  readonly keys: string[]
  /** Reason and pattern of each refused message. */
  readonly refusals: string[]
  readonly log: string[]
  readonly port: number
}

async function startNode(
  peers: readonly number[] = [],
  isWanted: (key: string) => boolean = () => true,
): Promise<Node> {
  const keys: string[] = []
  const refusals: string[] = []
  const log: string[] = []
  const write = (fields: object, message: string) => {
    log.push(`${message} ${(fields as { err?: Error }).err?.message ?? ''}`)
  }
  const broker = new MeshBroker({
    listen: { host: '127.0.0.1', port: 0 },
    peers: peers.map((port) => ({ host: '127.0.0.1', port })),
    secret: SECRET,
    brokerNamespace: 'test',
    brokerTimeoutMs: 5_000,
    brokerStartTimeoutMs: 5_000,
    brokerHeartbeatMs: 1_000,
    brokerMaxPendingBytes: 1_048_576,
    maxPayloadBytes: 1_000,
    dedupeWindowMs: 60_000,
    dedupeMaxIds: 1_000,
    ...historyOf(),
    logger: { debug: () => undefined, info: () => undefined, warn: write },
  })
  onTestFinished(() => broker.stop())
  await broker.start({
    deliver: ({ key }) => isWanted(key) && keys.push(key) > 0,
    gap: () => undefined,
    refused: ({ reason, pattern }) => refusals.push(`${reason} ${pattern}`),
    status: () => undefined,
  })
  return { broker, keys, log, refusals, port: broker.address?.port ?? 0 }
}

function open(port: number): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  onTestFinished(() => {
    socket.destroy()
  })
  return socket
}

/** A peer that knows the secret, has its link, and can send whatever it wants. */
async function openPeer(port: number): Promise<Socket> {
  const socket = open(port)
  await new Promise<void>((resolve, reject) => {
    const identity = { nodeId: STRANGER, namespace: 'test', rulesHash: '-'.repeat(16), listenPort: 0, secret: SECRET }
    new Handshake(new Wire(socket, MAX_HANDSHAKE_FRAME_BYTES), 'dialer', identity, 5_000, {
      failed: reject,
      authenticated: (wire) => {
        wire.handler = {
          closed: reject,
          frame: (type, bytes, start, end) => {
            if (type !== FRAME.start) return
            expect(decodeStart(bytes.subarray(start, end)).isResumed).toBe(false)
            wire.reader.maxFrameBytes = 1_000_000
            wire.write(encodeFrame(FRAME.started, encodeStarted({ isResumed: false, received: 0 })))
            resolve()
          },
        }
      },
    })
  })
  return socket
}

describe('a mesh port that strangers reach', () => {
  it('keeps few of them, and still takes a node', async () => {
    const a = await startNode()
    const strangers = Array.from({ length: 150 }, () => open(a.port))
    await eventually(() => expect(strangers.filter(({ destroyed }) => destroyed)).toHaveLength(150 - 64))
    const b = await startNode([a.port])
    await eventually(() => expect([a, b].map(({ broker }) => broker.linkCount)).toEqual([1, 1]))
    // Of a hundred that were turned away the log has a line, not a hundred.
    expect(a.log).toHaveLength(1)
  })

  it('takes no notice of garbage', async () => {
    const a = await startNode()
    const b = await startNode([a.port])
    await b.broker.bind('#')
    for (let round = 0; round < 50; round++) {
      const socket = open(a.port)
      socket.write(Buffer.from(Array.from({ length: 5 + 40 * round }, (_, at) => (at * 31 * round + 7) % 256)))
      await once(socket, 'close')
    }
    await a.broker.publish({ key: 'still', payload: new Uint8Array(0), isBinary: true })
    expect(b.keys).toEqual(['still'])
    expect([a, b].map(({ broker }) => broker.stats().lostCount)).toEqual([0, 0])
  })
})

describe('a peer that breaks the rules', () => {
  const textFrame = (key: string, payload = 'x') =>
    encodeFrame(FRAME.text, Buffer.from(`${String.fromCharCode(Buffer.byteLength(key))}${key}${payload}`))

  it.each([
    ['acknowledges what was not sent', encodeFrame(FRAME.ack, encodeSequence(1_000))],
    ['cuts an acknowledgement short', encodeFrame(FRAME.ack, new Uint8Array(3))],
    ['sends a message that ends within its key', encodeFrame(FRAME.text, Buffer.from('\x09short'))],
    ['sends a message without anything', encodeFrame(FRAME.binary)],
    ['sends a message that ends within its id', encodeFrame(FRAME.textWithId, Buffer.from('\x09short'))],
    ['sends a message without a key', encodeFrame(FRAME.binaryWithId, Buffer.from('\x02id'))],
    ['listens with what is no pattern', encodeFrame(FRAME.add, Buffer.from('a*'))],
    ['sends a frame of no type', encodeFrame(200)],
    ['starts a link again', encodeFrame(FRAME.start, new Uint8Array(30))],
    ['sends a frame without an end', Buffer.of(255, 255, 255, 255)],
    ['sends an empty frame', Buffer.of(0, 0, 0, 0)],
  ])('loses its link when it %s', async (_what, bytes) => {
    const a = await startNode()
    const peer = await openPeer(a.port)
    peer.write(bytes)
    await once(peer, 'close')
    expect(a.broker.stats().lostCount).toBe(1)
    expect(a.keys).toEqual([])
  })

  it('has messages counted and dropped that are none', async () => {
    const a = await startNode()
    await a.broker.bind('#')
    const peer = await openPeer(a.port)
    for (const key of ['', 'a.*', 'a b', 'fine']) peer.write(textFrame(key))
    peer.write(textFrame('too.large', 'x'.repeat(1_001)))
    peer.write(textFrame('fine.too', 'x'.repeat(1_000)))
    await eventually(() => expect(a.keys).toEqual(['fine', 'fine.too']))
    expect(a.broker.stats()).toMatchObject({ receivedCount: 6, malformedCount: 3, surplusCount: 0 })
    expect(a.refusals).toEqual([...Array.from({ length: 3 }, () => 'malformed undefined'), 'too-large too.large'])
  })

  it('has messages counted that nobody listens to', async () => {
    const a = await startNode([], () => false)
    const peer = await openPeer(a.port)
    peer.write(textFrame('unwanted'))
    await eventually(() => expect(a.broker.stats()).toMatchObject({ receivedCount: 1, surplusCount: 1 }))
  })
})
