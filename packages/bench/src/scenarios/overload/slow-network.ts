import { connect, createServer, type Socket } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import type { NetworkCommand, NetworkData, NetworkEvent, NetworkState } from './messages.js'
import { PacedLine } from './paced-line.js'

/** Thread with the network between the nodes and their broker, which carries a known number of bytes per second. */

const port = parentPort
if (port === null) throw new Error('slow-network runs as a worker thread only')

const TICK_MS = 4
const HOST = '127.0.0.1'
/** Connections take turns in pieces of this size. */
const PIECE_BYTES = 1_500
/** A connection with so much in the network is not read: the rest waits in the sockets of its node. */
const MAX_QUEUED_BYTES = 131_072

interface Piece {
  readonly bytes: Buffer
  readonly from: Socket
  readonly to: Socket
}

const { brokerPort, bytesPerSecond } = workerData as NetworkData
const toBroker = new PacedLine<Piece>(bytesPerSecond)
const fromBroker = new PacedLine<Piece>(Number.POSITIVE_INFINITY)
const lines = [toBroker, fromBroker]
const queuedBytes = new Map<Socket, number>()
let delayMs = 0
let carriedBytes = 0

const server = createServer((node) => {
  const broker = connect(brokerPort, HOST)
  carry(node, broker, toBroker)
  carry(broker, node, fromBroker)
})
server.listen(0, HOST, () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') post({ type: 'ready', port: address.port })
})
setInterval(pass, TICK_MS)

port.on('message', (command: NetworkCommand) => {
  pass()
  if (command.type === 'report') post({ type: 'carried', bytes: carriedBytes })
  else set(command)
})

function set(state: NetworkState): void {
  const nowMs = performance.now()
  delayMs = state.delayMs
  for (const line of lines) {
    line.delay(delayMs)
    if (state.isFrozen) line.freeze(nowMs)
    else line.thaw(nowMs)
  }
}

function carry(from: Socket, to: Socket, line: PacedLine<Piece>): void {
  from.setNoDelay(true)
  queuedBytes.set(from, 0)
  from.on('data', (data: Buffer) => {
    for (let at = 0; at < data.length; at += PIECE_BYTES) {
      const bytes = data.subarray(at, at + PIECE_BYTES)
      line.push({ bytes, from, to }, bytes.length, performance.now())
    }
    count(from, data.length)
  })
  from.on('error', () => undefined) // `close` follows.
  from.on('close', () => {
    queuedBytes.delete(from)
    to.destroy()
  })
}

function pass(): void {
  for (const line of lines) {
    for (const { bytes, from, to } of line.take(performance.now())) {
      if (line === toBroker) carriedBytes += bytes.length
      to.write(bytes)
      count(from, -bytes.length)
    }
  }
}

/** What is on its way only because of the delay does not count: a long way is not a full one. */
function count(from: Socket, byteCount: number): void {
  const queued = (queuedBytes.get(from) ?? 0) + byteCount
  if (from.destroyed) return
  queuedBytes.set(from, queued)
  if (queued > MAX_QUEUED_BYTES + (bytesPerSecond * delayMs) / 1_000) from.pause()
  else from.resume()
}

function post(event: NetworkEvent): void {
  port?.postMessage(event)
}
